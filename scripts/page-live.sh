#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# page-live.sh COMMAND...: run COMMAND with a real server, an agent and a busy program at hand:
# DIAGON_URL is the server's page, DIAGON_BUSY a function that the program spends its time in.
# Needs "make build" and root.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
program='' server=''
finish() {
	for pid in $server $program; do
		kill "$pid" 2>/dev/null || true
	done
	wait
	rm -rf "$dir"
}
trap finish EXIT

cat >"$dir/live.c" <<'C'
#include <stdint.h>
static volatile uint64_t sink;
void live_burn_cold(void) { for (uint64_t i = 0; i < 100000; i++) sink += i; }
void live_burn_hot(void) { for (uint64_t i = 0; i < 900000; i++) sink += i; }
int main(void) { for (;;) { live_burn_hot(); live_burn_cold(); } }
C
gcc -O0 -o "$dir/live" "$dir/live.c"
"$dir/live" &
program=$!

http=127.0.0.1:17270
bin/diagon-server --http $http --grpc 127.0.0.1:17271 --data "$dir/data" \
	--local-agent --local-agent-flag=--http=127.0.0.1:17272 --local-agent-flag=--rate=97 >"$dir/server.log" 2>&1 &
server=$!

seen() { curl -sfg "http://$http/api/v1/profiles?format=folded&query={comm=\"live\"}" 2>/dev/null | grep -q live_burn_hot; }
for _ in {1..120}; do
	if seen; then
		break
	fi
	sleep 0.5
done
if ! seen; then
	echo "page-live.sh: the busy program did not show within a minute; the server said:" >&2
	cat "$dir/server.log" >&2
	exit 1
fi
DIAGON_URL=http://$http/ DIAGON_BUSY=live_burn_hot "$@"
