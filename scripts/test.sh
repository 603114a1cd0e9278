#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test.sh [PACKAGE...]: the Go tests (those named, or all and the page's too).
# Ends with "N passed, N failed", also in out/test.summary; details in out/*.json.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
# shellcheck source=scripts/node.sh
. scripts/node.sh
mkdir -p out
rm -f out/test*.json out/test.summary out/vitest.json

passed=0 failed=0 skipped=0

# add PASSED FAILED SKIPPED
add() {
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# count FILE ACTION: the tests, not packages, that ended so in a file of "go test -json".
count() { grep -c "\"Action\":\"$2\".*\"Test\":" "$1" || true; }

# go_tests FILE FOLDER ARGUMENT...: a package that does not build or dies fails once more than its tests.
go_tests() {
	local file=$PWD/out/$1 status=0 bad
	# Two packages at a time: several of them load the kernel and the CPUs on purpose.
	go tool -modfile=tools/go.mod gotestsum --format pkgname --hide-summary skipped --jsonfile "$file" \
		-- -C "$2" -p 2 -timeout 9m "${@:3}" || status=$?
	[[ -f $file ]] || : >"$file"
	bad=$(count "$file" fail)
	if ((status != 0 && bad == 0)); then
		bad=1
	fi
	add "$(count "$file" pass)" "$bad" "$(count "$file" skip)"
}

# page_tests: those of the page's functions, then those in a browser.
page_tests() {
	npm --prefix ui test -- --reporter=default --reporter=json --outputFile="$PWD/out/vitest.json"
	if [[ -s out/vitest.json ]]; then
		# shellcheck disable=SC2046 # three numbers
		add $(node -e 'const r = JSON.parse(require("fs").readFileSync("out/vitest.json"));
			console.log(r.numPassedTests, r.numFailedTests + r.testResults.filter((f) => f.status === "failed" && f.assertionResults.length === 0).length, r.numPendingTests)')
	else
		add 0 1 0
	fi

	# It ends with a line like ours. A run that ends without one is one failure.
	npm --prefix ui run test:browser | tee out/browser.log
	local status=${PIPESTATUS[0]} line
	line=$(grep -Eo '[0-9]+ passed, [0-9]+ failed' out/browser.log | tail -1)
	# shellcheck disable=SC2086
	set -- ${line//[^0-9 ]/}
	if (($# == 2)) && { ((status == 0)) || (($2 > 0)); }; then
		add "$1" "$2" 0
	else
		add "${1:-0}" 1 0
	fi
}

if (($#)); then
	go_tests test.json . "$@"
else
	go_tests test.json . ./...
	go_tests test-charts.json charts ./...
	page_tests
fi

if ((skipped)); then
	echo "skipped: $skipped (why: grep -h 'SKIP\|skip' out/test*.json)"
fi
echo "$passed passed, $failed failed" | tee out/test.summary
((failed == 0))
