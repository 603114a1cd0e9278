// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"diagon.dev/diagon/cmd/diagon/internal/losses"
	"diagon.dev/diagon/cmd/diagon/internal/text"
)

// A By says what a line of the screen stands for.
type By int

// What lines stand for.
const (
	ByFunction By = iota
	ByProcess
)

// Head is one line about the whole interval.
func (t Table) Head(cpus int) string {
	return fmt.Sprintf("%s  %.1fs  %.2f of %d CPUs busy  %d samples  lost: %s",
		t.End.Format(time.TimeOnly), t.Length.Seconds(), t.busy(), cpus, t.Samples, losses.Text(t.Losses, func(n uint64) string { return strconv.FormatUint(n, 10) }))
}

// busy is how many CPUs worked on the mean.
func (t Table) busy() float64 {
	if t.Length <= 0 {
		return 0
	}
	return t.Seen.Seconds() / t.Length.Seconds()
}

// columns are the widths of what stands before the function.
const (
	percentWidth = 7
	pidWidth     = 8
	commWidth    = 16
)

// Title names the columns.
func (t Table) Title(by By, width int) string {
	if by == ByProcess {
		return fit(fmt.Sprintf("%*s  %*s  %-*s  %s", percentWidth, "CPU %", pidWidth, "PID", commWidth, "PROCESS", "HOTTEST FUNCTION"), width)
	}
	return functionLine("SELF %", "TOTAL %", "FUNCTION", "MODULE", width)
}

// Lines are the table's first lines, each no wider than width; width 0 has no bound. Shares
// of functions are of the CPU time seen; those of processes are of one CPU.
func (t Table) Lines(by By, most, width int) []string {
	var lines []string
	if by == ByProcess {
		for _, p := range t.Processes[:min(most, len(t.Processes))] {
			pid, comm := fmt.Sprint(p.PID), p.Comm
			if p.PID == 0 {
				pid, comm = "-", "[not visible]"
			}
			lines = append(lines, fit(fmt.Sprintf("%*s  %*s  %-*s  %s", percentWidth, share(p.CPU, t.Length), pidWidth, pid,
				commWidth, ansi.Truncate(cmp.Or(text.Printable(comm), "?"), commWidth, "…"), text.Printable(p.Hottest)), width))
		}
		return lines
	}
	for _, f := range t.Functions[:min(most, len(t.Functions))] {
		lines = append(lines, functionLine(share(f.Self, t.CPU), share(f.Total, t.CPU), f.Name, f.Module, width))
	}
	return lines
}

// functionLine gives the module a quarter of the line, and the function the rest.
func functionLine(self, total, name, module string, width int) string {
	name, module = text.Printable(name), text.Printable(module)
	left := fmt.Sprintf("%*s  %*s  ", percentWidth, self, percentWidth, total)
	nameWidth := 50
	if width > 0 {
		nameWidth = max(10, width-len(left)-2-max(10, width/4))
	}
	if width > 0 || ansi.StringWidth(name) < nameWidth {
		name = ansi.Truncate(name, nameWidth, "…")
		name += strings.Repeat(" ", max(0, nameWidth-ansi.StringWidth(name)))
	}
	return fit(left+name+"  "+module, width)
}

func fit(line string, width int) string {
	line = strings.TrimRight(line, " ")
	if width <= 0 {
		return line
	}
	return ansi.Truncate(line, width, "…")
}

func share(part, whole time.Duration) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*part.Seconds()/whole.Seconds())
}
