#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench.sh [PATTERN]: Go's benchmarks of every package, then what bench/ measures on the whole.
set -euo pipefail
cd "$(dirname "$0")/.."

go test -run '^$' -bench "${1:-.}" -benchmem ./...
if [[ -x bench/run.sh ]]; then
	bench/run.sh
fi
