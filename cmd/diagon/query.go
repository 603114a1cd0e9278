// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"diagon.dev/diagon/cmd/diagon/internal/client"
	"diagon.dev/diagon/cmd/diagon/internal/losses"
	"diagon.dev/diagon/cmd/diagon/internal/text"
)

// queryFormats are the formats of the API.
var queryFormats = []string{"top", "folded", "flamegraph", "pprof", "speedscope"}

func newQueryCommand() *cobra.Command {
	sel := client.Selection{Type: "cpu", Query: "{}", From: "now-5m", To: "now", Format: "top"}
	out, rows := stdoutName, 40
	cmd := &cobra.Command{
		Use:   "query [--query '{node=\"n\"}'] [--from now-5m] [--format top] [-o FILE]",
		Short: "Print a profile that a server holds",
		Example: `  diagon query --query '{node="worker-3"}'
  diagon query --query '{workload=~"llama.*"}' --from now-1h --format folded
  diagon query --format pprof -o out.pb.gz && go tool pprof -http=: out.pb.gz`,
		Args: noArguments,
	}
	flags := cmd.Flags()
	flags.StringVar(&sel.Type, "type", sel.Type, "sample `type`: samples, cpu, offcpu, ...")
	flags.StringVar(&sel.Query, "query", sel.Query, "label `matchers` as in Prometheus")
	flags.StringVar(&sel.From, "from", sel.From, "begin: now-5m, RFC 3339 or Unix seconds")
	flags.StringVar(&sel.To, "to", sel.To, "end, likewise")
	flags.StringVar(&sel.Capture, "capture", "", "only samples of the capture with this `id`")
	flags.StringVar(&sel.Format, "format", sel.Format, strings.Join(queryFormats, ", "))
	flags.IntVarP(&rows, "rows", "n", rows, "functions shown by top; 0 shows all that the server sends")
	flags.StringVarP(&out, "out", "o", out, "`file` to write; - is standard output")
	open := serverSetting(cmd)
	cmd.RunE = withServer(open, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if !slices.Contains(queryFormats, sel.Format) {
			return usagef("query: --format: %q is not one of %s", sel.Format, strings.Join(queryFormats, ", "))
		}
		file, err := create(out, sel.Format, cmd.OutOrStdout())
		if err != nil {
			return wrap("query", err)
		}
		defer file.abandon()
		if sel.Format != "top" {
			return wrap("query", file.fill(func(w io.Writer) error { return c.Profile(cmd.Context(), sel, w) }))
		}
		top, err := c.Top(cmd.Context(), sel)
		if err != nil {
			return wrap("query", err)
		}
		return wrap("query", file.fill(func(w io.Writer) error { return writeTop(w, top, rows) }))
	})
	return cmd
}

// writeTop is the server's table for a person.
func writeTop(w io.Writer, top client.Top, rows int) error {
	w = text.Writer(w)
	if top.Total == 0 {
		fmt.Fprintln(w, "no samples: nothing matches in that time (`diagon nodes` lists who sends)")
		return nil
	}
	shown := top.Rows
	if rows > 0 {
		shown = shown[:min(rows, len(shown))]
	}
	t := newTable(">SELF", ">SELF %", ">TOTAL", ">TOTAL %", "FUNCTION", "MODULE")
	for _, r := range shown {
		t.add(amount(r.Self, top.Unit), percent(r.Self, top.Total), amount(r.Total, top.Unit), percent(r.Total, top.Total), r.Function, cmp.Or(r.Module, "-"))
	}
	fmt.Fprintf(w, "%s: %s in all\n\n", top.Type, amount(top.Total, top.Unit))
	if err := t.write(w); err != nil {
		return err
	}
	if more := len(top.Rows) - len(shown); more > 0 {
		all := "all"
		if top.Cut != nil {
			all = "all that the server sent"
		}
		fmt.Fprintf(w, "\n%s more functions; -n 0 shows %s\n", thousands(int64(more)), all)
	}
	if top.Cut != nil {
		fmt.Fprintf(w, "\nleft out by the server: %s functions, %s\n", thousands(int64(top.Cut.Nodes)), selfText(top.Cut.Value, top.Type, top.Unit))
	}
	for _, l := range top.Losses {
		what := "lost"
		if losses.Unnamed(l.Place) {
			what = "without names"
		}
		fmt.Fprintf(w, "%s: %s at %s on %s\n", what, thousands(int64(l.Count)), l.Place, cmp.Or(l.Node, "?"))
	}
	return nil
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", 100*float64(part)/float64(whole))
}

// selfText is what functions took by themselves, together.
func selfText(n int64, typ, unit string) string {
	if n == 0 {
		return "which took no " + typ + " themselves"
	}
	return fmt.Sprintf("which took %s of %s themselves", amount(n, unit), typ)
}

// amount writes a value in its unit.
func amount(n int64, unit string) string {
	if unit != "nanoseconds" {
		return thousands(n)
	}
	switch d := time.Duration(n); {
	case d >= time.Hour:
		return fmt.Sprintf("%.2fh", d.Hours())
	case d >= time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.0fms", float64(d)/1e6)
	case d == 0:
		return "0"
	}
	return time.Duration(n).String()
}
