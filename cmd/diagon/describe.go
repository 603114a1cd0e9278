// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"diagon.dev/diagon/cmd/diagon/internal/losses"
	"diagon.dev/diagon/pkg/agent"
	"diagon.dev/diagon/pkg/profile"
)

// describe says what a recording holds, what it lost, and how to look at it.
func describe(w io.Writer, o recordOptions, window agent.Window, out *output) {
	var values profile.Values
	var frames, named int64
	stacks := make(map[string]struct{}, len(window.Records))
	for i := range window.Records {
		r := &window.Records[i]
		values.Add(r.Values)
		for _, f := range r.Stack {
			frames += r.Values[profile.Samples]
			if f.Location.Named() {
				named += r.Values[profile.Samples]
			}
		}
		stacks[foldedStack(r.Stack)] = struct{}{}
	}
	took := window.End.Sub(window.Start)

	if out.name != stdoutName {
		fmt.Fprintf(w, "wrote %s, %s\n", out.name, bytesText(out.size))
	}
	for _, line := range [][2]string{
		{"samples", fmt.Sprintf("%s in %s at %d Hz: %s of CPU time", thousands(values[profile.Samples]), seconds(took), o.hz, seconds(time.Duration(values[profile.CPU])))},
		{"stacks", thousands(int64(len(stacks))) + " different"},
		{"names", share(named, frames) + " of frames"},
		{"lost", losses.Text(window.Losses, count)},
		{"open", openHint(out)},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "  %-8s %s\n", line[0], line[1])
		}
	}
}

func openHint(out *output) string {
	switch {
	case out.name == stdoutName:
		return ""
	case out.format == formatFolded:
		return "any flame graph tool: flamegraph.pl, speedscope"
	}
	return "go tool pprof -http=: " + shellWord(out.name)
}

// shellWord quotes what a shell would take apart.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// addLosses is the sum of both by place.
func addLosses(a, b []profile.Loss) []profile.Loss {
	sum := slices.Clone(a)
	for _, l := range b {
		i := slices.IndexFunc(sum, func(s profile.Loss) bool { return s.Place == l.Place })
		if i < 0 {
			sum = append(sum, l)
		} else {
			sum[i].Count += l.Count
		}
	}
	slices.SortFunc(sum, func(x, y profile.Loss) int { return cmp.Compare(x.Place, y.Place) })
	return sum
}

// share is a part in percent, to a tenth; it says 100 % only when nothing is missing.
func share(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	if part == whole {
		return "100 %"
	}
	return fmt.Sprintf("%.1f %%", min(99.9, 100*float64(part)/float64(whole)))
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// count is thousands of a loss.
func count(n uint64) string { return thousands(int64(n)) }

// thousands groups digits: 1,234,567.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// bytesText writes a size for a person.
func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
