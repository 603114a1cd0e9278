// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"diagon.dev/diagon/pkg/agent/doctor"
)

// examineTime bounds an examination, which takes well under a second.
const examineTime = 30 * time.Second

func newDoctorCommand() *cobra.Command {
	cfg := doctor.DefaultConfig()
	var format string
	cmd := &cobra.Command{
		Use:   "doctor [-o json]",
		Short: "Say what this host can do, what not, why, and what to do",
		Long: `doctor tries each thing that diagon does on a host, says what works and what does not, why,
and what would change that. It changes nothing and leaves nothing behind.

The exit status is 0 when the CPU profile works and 3 when it does not.`,
		Args: noArguments,
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	cmd.Flags().StringVar(&cfg.Data, "data", cfg.Data, "the agent's data `folder`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if format != "text" && format != "json" {
			return usagef("doctor: -o: %q is neither text nor json", format)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), examineTime)
		defer cancel()
		findings := doctor.Examine(ctx, cfg)
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		return showFindings(cmd.OutOrStdout(), findings, format)
	}
	return cmd
}

func showFindings(w io.Writer, findings []doctor.Finding, format string) error {
	profile, _ := doctor.Find(findings, doctor.OnCPU)
	var err error
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(struct {
			CPUProfile bool             `json:"cpu_profile"`
			Findings   []doctor.Finding `json:"findings"`
		}{profile.Works, findings})
	} else {
		_, err = io.WriteString(w, newDoctorText(w).all(findings))
	}
	if err == nil && !profile.Works {
		return exitStatus(exitUnavailable)
	}
	return err
}

// doctorText writes findings for a person.
type doctorText struct {
	styled    bool
	width     int // columns of the terminal; 0: lines are not broken
	nameWidth int
}

func newDoctorText(w io.Writer) *doctorText {
	t := &doctorText{styled: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.width, _, _ = term.GetSize(int(f.Fd()))
	}
	return t
}

var (
	good = ansi.NewStyle().ForegroundColor(ansi.Green)
	bad  = ansi.NewStyle().ForegroundColor(ansi.Red).Bold()
	fair = ansi.NewStyle().ForegroundColor(ansi.Yellow)
	bold = ansi.NewStyle().Bold()
)

// in writes a text in a style, where the output shows any.
func (t *doctorText) in(s ansi.Style, text string) string {
	if !t.styled {
		return text
	}
	return s.Styled(text)
}

// areaTitles are the headings, in order.
var areaTitles = []struct{ area, title string }{
	{doctor.AreaSampling, "Sampling"},
	{doctor.AreaNames, "Names"},
	{doctor.AreaProcesses, "Processes"},
	{doctor.AreaHost, "Host"},
	{doctor.AreaCapabilities, "Capabilities of this process"},
	{doctor.AreaLater, "Not needed yet"},
}

func (t *doctorText) all(findings []doctor.Finding) string {
	for _, f := range findings {
		t.nameWidth = max(t.nameWidth, len(f.Name))
	}
	var b strings.Builder
	host, _ := os.Hostname()
	fmt.Fprintf(&b, "%s, %s, %s, user %d\n", t.in(bold, host), kernelRelease(), runtime.GOARCH, os.Geteuid())
	for _, area := range areaTitles {
		fmt.Fprintf(&b, "\n%s\n", t.in(bold, area.title))
		for _, f := range findings {
			if f.Area == area.area {
				t.one(&b, f)
			}
		}
	}
	b.WriteString("\n" + t.verdict(findings) + "\n")
	return b.String()
}

func (t *doctorText) one(b *strings.Builder, f doctor.Finding) {
	mark := t.in(good, "✓")
	switch {
	case !f.Works && f.Optional:
		mark = t.in(fair, "–")
	case !f.Works:
		mark = t.in(bad, "✗")
	}
	indent := strings.Repeat(" ", t.nameWidth+6)
	lines := t.broken(f.Detail)
	if !f.Works {
		lines = t.broken(f.Why)
		if f.Detail != "" {
			lines = append(lines, t.broken(f.Detail)...)
		}
		for i, line := range t.broken("→ " + f.Do) {
			if f.Do != "" {
				lines = append(lines, t.in(bold, strings.Repeat(" ", min(i, 1)*2)+line))
			}
		}
	}
	body := strings.Join(lines, "\n"+indent)
	fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("  %s %-*s  %s", mark, t.nameWidth, f.Name, body), " "))
}

// broken breaks a text into lines that fit the terminal.
func (t *doctorText) broken(text string) []string {
	room := t.width - t.nameWidth - 8
	if t.width == 0 || room < 20 {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && ansi.StringWidth(line)+1+ansi.StringWidth(word) > room {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// verdict is the last line: what it all comes to.
func (t *doctorText) verdict(findings []doctor.Finding) string {
	profile, _ := doctor.Find(findings, doctor.OnCPU)
	var missing []string
	for _, f := range findings {
		if !f.Works && !f.Optional && f.Area != doctor.AreaCapabilities {
			missing = append(missing, f.Name)
		}
	}
	switch {
	case !profile.Works:
		return t.in(bad, "The CPU profile does not work here.")
	case len(missing) > 0:
		return t.in(fair, "The CPU profile works, with less than it could have: see "+strings.Join(missing, ", ")+".")
	}
	return t.in(good, "The CPU profile works.")
}
