#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# deps.sh build|test: install what is missing here, and nothing else. Debian
# packages by apt-get, Go modules, and a newer node from npm where Debian's is too old.
set -euo pipefail
cd "$(dirname "$0")/.."

# Which package brings what. A path or a command that is there needs nothing.
build='gcc:gcc g++:g++ git:git /etc/ssl/certs/ca-certificates.crt:ca-certificates node:nodejs npm:npm'
# By verify, lint and tests: the BPF compiler, headers and formatter, a browser, binutils, xz, shellcheck.
test='clang-19:clang-19 llvm-strip-19:llvm-19 /usr/include/bpf/bpf_helpers.h:libbpf-dev clang-format-19:clang-format-19
	objcopy:binutils xz:xz-utils curl:curl shellcheck:shellcheck chromium:chromium'

missing() {
	local pair
	for pair in "$@"; do
		if [[ $pair == /* ]]; then
			[[ -e ${pair%%:*} ]] || echo "${pair##*:}"
		else
			command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
		fi
	done
}

wanted=$build
if [[ ${1:-} == test ]]; then
	wanted="$build $test"
fi
command -v go >/dev/null || {
	echo "deps: go is missing: install Go $(awk '/^go / { print $2 }' go.mod) or newer from https://go.dev/dl" >&2
	exit 1
}

# shellcheck disable=SC2086 # the list is to be split
mapfile -t packages < <(missing $wanted)
if ((${#packages[@]})); then
	command -v apt-get >/dev/null || {
		echo "deps: install these (names as in Debian 12): ${packages[*]}" >&2
		exit 1
	}
	sudo=
	[[ $(id -u) == 0 ]] || sudo=sudo
	echo "deps: apt-get install ${packages[*]}"
	export DEBIAN_FRONTEND=noninteractive
	$sudo apt-get update -q
	$sudo apt-get install -q -y --no-install-recommends "${packages[@]}"
fi

scripts/node.sh install

# What this platform needs of the modules; "go mod download" would bring DuckDB for all of them.
stamp=bin/.modules-${1:-build}
if [[ ! go.sum -ot $stamp || ! tools/go.sum -ot $stamp || ! charts/go.sum -ot $stamp ]]; then
	go list -deps ./cmd/... >/dev/null
	if [[ ${1:-} == test ]]; then
		go list -deps tool >/dev/null
		go list -deps -test ./... >/dev/null
		go -C tools list -deps tool >/dev/null
		go -C charts list -deps tool >/dev/null
		go -C charts list -deps -test ./... >/dev/null
	fi
	mkdir -p bin && touch "$stamp"
fi
