#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh: what diagon costs as a whole, and how it compares with perf. As root, on an idle
# machine, after "make build"; takes about six minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

for rate in 19 99; do
	go run ./bench/agent --bin bin --rate "$rate"
	echo
done
bench/perf.sh
