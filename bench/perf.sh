#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# perf.sh: "perf record" and "diagon record" watch the same program at the same time and rate;
# prints the share that each gives to its functions. Needs perf (Debian: linux-perf), gcc, root.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v perf >/dev/null || {
	echo "perf.sh: perf is missing: apt-get install linux-perf" >&2
	exit 1
}
rate=99 seconds=20
dir=$(mktemp -d)
trap 'kill "$program" 2>/dev/null; rm -rf "$dir"' EXIT

cat >"$dir/busy.c" <<'C'
#include <stdint.h>
static volatile uint64_t sink;
void spin(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i; }
void hot(void) { spin(500000); sink++; }
void warm(void) { spin(300000); sink++; }
void mild(void) { spin(200000); sink++; }
int main(void) { for (;;) { hot(); warm(); mild(); } }
C
gcc -O0 -o "$dir/busy" "$dir/busy.c"
"$dir/busy" &
program=$!

perf record -q -e cpu-clock -F "$rate" -g -p "$program" -o "$dir/perf.data" -- sleep "$seconds" &
watcher=$!
bin/diagon record --rate "$rate" --pid "$program" -d "${seconds}s" -o "$dir/diagon.folded" 2>/dev/null
wait "$watcher"
perf script -i "$dir/perf.data" -F comm,ip,sym 2>/dev/null >"$dir/perf.txt"

# A sample is a paragraph of frames in one file and a line of them in the other.
echo "| samples with | perf | diagon |"
echo "|---|---|---|"
perf_total=$(grep -c '^busy' "$dir/perf.txt")
diagon_total=$(awk '{ n += $NF } END { print n }' "$dir/diagon.folded")
for f in hot warm mild main; do
	p=$(awk -v RS= -v f="$f" '$0 ~ "[ ]" f "(\n|$)" { n++ } END { print n + 0 }' "$dir/perf.txt")
	d=$(awk -v f="$f" '{ v = $NF; $NF = ""; s = ";" $0; sub(/ +$/, "", s); s = s ";"; if (index(s, ";" f ";")) n += v } END { print n + 0 }' "$dir/diagon.folded")
	awk -v f="$f" -v p="$p" -v pt="$perf_total" -v d="$d" -v dt="$diagon_total" \
		'BEGIN { printf "| %s | %.1f %% | %.1f %% |\n", f, 100 * p / pt, 100 * d / dt }'
done
echo "| samples | $perf_total | $diagon_total |"
