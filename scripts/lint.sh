#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh: all linters; each one speaks, then the first failure decides.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
# shellcheck source=scripts/node.sh
. scripts/node.sh

bad=0
check() {
	echo "lint: $1"
	"${@:2}" || bad=1
}
tool() { go tool -modfile=tools/go.mod "$@"; }
shells() { { git ls-files '*.sh'; git ls-files .ci; } | xargs shellcheck -x; }
words() { git ls-files -- '*.go' '*.md' '*.c' '*.h' '*.proto' '*.ts' '*.tsx' '*.yaml' | xargs go tool -modfile=tools/go.mod misspell -i rela -error; }
charts() {
	local chart
	for chart in charts/*/Chart.yaml; do
		go -C charts tool helm lint --strict --quiet "./$(basename "${chart%/*}")" || return 1
	done
}

check "go vet" go vet ./...
check "go vet, charts" go -C charts vet ./...
check "staticcheck" tool staticcheck ./...
check "misspell" words
check "shellcheck" shells
check "buf" tool buf lint
check "biome" npm --prefix ui run --silent lint
check "helm" charts
exit $bad
