#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh: what is generated is what was committed, and everything is formatted.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

bad=0
# check NAME COMMAND...: fails when the command does, or prints anything.
check() {
	local out status=0
	out=$("${@:2}" 2>&1) || status=$?
	if ((status != 0)) || [[ -n $out ]]; then
		echo "verify: $1"
		head -100 <<<"$out"
		bad=1
	fi
}

files() { git ls-files -z -- "$@"; }
# Hashes and not git diff, so that it works with uncommitted changes too.
generated() {
	find api pkg -name '*.pb.go' -o -name '*_bpfel.go' -o -name '*_bpfel.o' | sort | xargs sha256sum
}
gofmt_tree() { files '*.go' | xargs -0 gofmt -s -l; }
clang_format() { files 'bpf/*.c' 'bpf/*.h' | xargs -0 clang-format-19 --dry-run -Werror; }

before=$(generated)
if out=$(make --no-print-directory generate 2>&1); then
	check "these were generated otherwise; commit what make generate made" diff <(echo "$before") <(generated)
else
	check "make generate" echo "$out"
fi
check "go mod tidy" go mod tidy -diff
check "go mod tidy, in tools" go -C tools mod tidy -diff
check "go mod tidy, in charts" go -C charts mod tidy -diff
check "gofmt -s -w these" gofmt_tree
check "clang-format" clang_format
((bad == 0)) && echo "verify: ok"
exit $bad
