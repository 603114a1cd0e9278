#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: puts a node that is new enough for ui/package.json on the PATH.
# node.sh install: gets one from npm into bin/node where the system's is too old,
# as Debian 12's is.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
own=$root/bin/node/node_modules/node-linux-$(case $(uname -m) in aarch64) echo arm64 ;; *) echo x64 ;; esac)

new_enough() {
	"$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}

if [[ ${1:-} == install ]] && ! new_enough node && ! new_enough "$own/bin/node"; then
	echo "deps: node $(node --version) is too old for the page's tools; a newer one goes into bin/node"
	mkdir -p "$root/bin/node"
	npm install --prefix "$root/bin/node" --no-audit --no-fund --no-save "${own##*/}@22" || exit 1
fi
if [[ -x $own/bin/node ]] && ! new_enough node; then
	PATH=$own/bin:$PATH
fi
