#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh TIME [FOLDER]: each fuzz target for TIME, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

bad=0
while IFS=: read -r file target; do
	echo "== ${file%/*} $target"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-20s}" "./${file%/*}" || bad=1
done < <(git grep -oE '^func Fuzz[A-Za-z0-9_]*' -- "${2:-.}/*_test.go" | sed 's/func //')
exit $bad
