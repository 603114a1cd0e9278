#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test.sh SUMMARY KIND...: the tests of the kinds go, page, charts. Ends with
# "N passed, N failed", also in out/SUMMARY; details beside it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
# shellcheck source=scripts/node.sh
. scripts/node.sh
mkdir -p out
rm -f "out/$1"

passed=0 failed=0 skipped=0

# add PASSED FAILED SKIPPED
add() {
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# count FILE ACTION: the tests, not packages, that ended so in a file of "go test -json".
count() { grep -c "\"Action\":\"$2\".*\"Test\":" "$1" || true; }

# go_tests FILE FOLDER ARGUMENT...: a package that does not build or dies fails once more than its tests.
go_tests() {
	local root=$PWD file=$PWD/out/$1 status=0 bad
	rm -f "$file"
	# Two packages at a time: several of them load the kernel and the CPUs on purpose. No
	# result of an earlier run: Go's cache does not know that the kernel is another one.
	(cd "$2" && go tool -modfile="$root/tools/go.mod" gotestsum --format pkgname --hide-summary skipped --jsonfile "$file" \
		-- -count=1 -p 2 -timeout 9m "${@:3}") || status=$?
	[[ -f $file ]] || : >"$file"
	bad=$(count "$file" fail)
	if ((status != 0 && bad == 0)); then
		bad=1
	fi
	add "$(count "$file" pass)" "$bad" "$(count "$file" skip)"
}

# page_tests: those of the page's functions, then those in a browser: against made-up answers, which hold
# what this machine may not show, and against a real server with a real agent.
page_tests() {
	rm -f out/vitest.json
	npm --prefix ui test -- --reporter=default --reporter=json --outputFile="$PWD/out/vitest.json"
	if [[ -s out/vitest.json ]]; then
		# shellcheck disable=SC2046 # three numbers
		add $(node -e 'const r = JSON.parse(require("fs").readFileSync("out/vitest.json"));
			console.log(r.numPassedTests, r.numFailedTests + r.testResults.filter((f) => f.status === "failed" && f.assertionResults.length === 0).length, r.numPendingTests)')
	else
		add 0 1 0
	fi

	browser_tests npm --prefix ui run test:browser
	browser_tests scripts/page-live.sh npm --prefix ui run test:live
}

# browser_tests COMMAND...: node's runner ends with lines such as "# pass 12" (or another sign for #).
browser_tests() {
	"$@" | tee out/browser.log
	local status=${PIPESTATUS[0]} good bad skip
	good=$(ended pass) bad=$(ended fail) skip=$(ended skipped)
	if ((status != 0 && bad == 0 || good + bad == 0)); then
		bad=1
	fi
	add "$good" "$bad" "$skip"
}

ended() { grep -Eo "^[^a-z0-9]+ $1 [0-9]+\$" out/browser.log | grep -Eo '[0-9]+' || echo 0; }

for kind in "${@:2}"; do
	case $kind in
	go) go_tests go.json . ./... ;;
	charts) go_tests charts.json charts ./... ;;
	page) page_tests ;;
	esac
done

if ((skipped)); then
	echo "skipped: $skipped; out/go.json says why"
fi
echo "$passed passed, $failed failed" | tee "out/$1"
((failed == 0))
