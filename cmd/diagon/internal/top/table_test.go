// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"diagon.dev/diagon/pkg/agent"
	"diagon.dev/diagon/pkg/profile"
)

var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// window is a second of records, with the losses of that time.
func window(losses []profile.Loss, records ...profile.Record) agent.Window {
	return agent.Window{
		Batch:   profile.Batch{Start: start, End: start.Add(time.Second), Records: records, Losses: losses},
		Samples: uint64(len(records)),
	}
}

// record is CPU time of a process on a stack, leaf first: "name" in the module "busy", "name[k]" in the kernel,
// "a<b" is a inlined into b, and "?" an address without a name.
func record(pid int, comm string, cpu time.Duration, stack ...string) profile.Record {
	r := profile.Record{}
	if comm != "" {
		r.Subject = &profile.Subject{PID: pid, Comm: comm}
	}
	r.Values[profile.Samples], r.Values[profile.CPU] = 1, int64(cpu)
	for _, name := range stack {
		f := profile.Frame{Location: &profile.Location{Mapping: &profile.Mapping{Path: "/bin/busy"}, Offset: 0x40}}
		if bare, kernel := strings.CutSuffix(name, "[k]"); kernel {
			name, f.Realm = bare, profile.RealmKernel
			f.Location.Realm, f.Location.Mapping = profile.RealmKernel, &profile.Mapping{Path: "[kernel]"}
		}
		if name != "?" {
			for function := range strings.SplitSeq(name, "<") {
				f.Location.Lines = append(f.Location.Lines, profile.Line{Function: function})
			}
		}
		r.Stack = append(r.Stack, f)
	}
	return r
}

func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name    string
		windows []agent.Window
		by      By
		want    string
	}{
		{name: "the hottest by itself comes first", windows: []agent.Window{window(nil,
			record(1, "busy", 300*time.Millisecond, "hot", "main"), record(1, "busy", 100*time.Millisecond, "warm", "main"))}, want: `
   75.0     75.0  hot                                                 busy
   25.0     25.0  warm                                                busy
    0.0    100.0  main                                                busy`},
		{name: "recursion counts a stack once", windows: []agent.Window{window(nil, record(1, "busy", time.Second, "f", "f", "main"))}, want: `
  100.0    100.0  f                                                   busy
    0.0    100.0  main                                                busy`},
		{name: "what was inlined counts by itself", windows: []agent.Window{window(nil, record(1, "busy", time.Second, "inner<outer", "main"))}, want: `
  100.0    100.0  inner                                               busy
    0.0    100.0  main                                                busy
    0.0    100.0  outer                                               busy`},
		{name: "one name in kernel and program is two functions", windows: []agent.Window{window(nil, record(1, "busy", time.Second, "read[k]", "read"))}, want: `
  100.0    100.0  read                                                [kernel]
    0.0    100.0  read                                                busy`},
		{name: "no name is no guess", windows: []agent.Window{window(nil, record(1, "busy", time.Second, "?"), record(1, "busy", time.Second))}, want: `
   50.0     50.0  [no stack]
   50.0     50.0  busy+0x40                                           busy`},
		{name: "windows add up", windows: []agent.Window{window(nil, record(1, "busy", time.Second, "a")), window(nil, record(1, "busy", 3*time.Second, "b"))}, want: `
   75.0     75.0  b                                                   busy
   25.0     25.0  a                                                   busy`},
		{name: "a process has its share of one CPU", by: ByProcess, windows: []agent.Window{window(nil,
			record(7, "train", 1500*time.Millisecond, "hot", "main"), record(7, "train", 100*time.Millisecond, "warm", "main"), record(0, "", 100*time.Millisecond, "x"))}, want: `
  160.0         7  train             hot
   10.0         -  [not visible]     x`},
		{name: "a name cannot steer the terminal", by: ByProcess, windows: []agent.Window{window(nil, record(7, "a\x1b[2Jb", time.Second, "x\ny"))}, want: `
  100.0         7  a` + "\uFFFD" + `[2Jb            x` + "\uFFFD" + `y`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(NewTable(tt.windows...).Lines(tt.by, 100, 0), "\n")
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHead(t *testing.T) {
	lost := []profile.Loss{{Place: "ring", Count: 2}}
	table := NewTable(window(lost, record(1, "busy", 1500*time.Millisecond, "a")), window(lost, record(1, "busy", time.Second, "a")))
	want := "12:00:01  2.0s  1.25 of 4 CPUs busy  2 samples  lost: 4 at ring"
	if got := table.Head(4); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := (Table{}).Head(1); !strings.HasSuffix(got, "0.00 of 1 CPUs busy  0 samples  lost: nothing") {
		t.Errorf("an empty table: %s", got)
	}
}

func TestScreen(t *testing.T) {
	var records []profile.Record
	for i := range 50 {
		records = append(records, record(i+1, "p", time.Duration(100-i)*time.Millisecond, "f"+string(rune('A'+i)), "main"))
	}
	table := NewTable(window(nil, records...))
	key := func(s string) tea.Msg {
		if s == "down" {
			return tea.KeyPressMsg{Code: tea.KeyDown}
		}
		return tea.KeyPressMsg{Code: []rune(s)[0], Text: s}
	}
	for _, tt := range []struct {
		name string
		msgs []tea.Msg
		has  []string
		not  []string
	}{
		{name: "before the first table it says what it waits for", has: []string{"watching this host at 99 Hz"}},
		{name: "functions first", msgs: []tea.Msg{table}, has: []string{"SELF %", "fA", "q quit", "lost: nothing"}, not: []string{"PID"}},
		{name: "p shows processes", msgs: []tea.Msg{table, key("p")}, has: []string{"PID", "HOTTEST FUNCTION"}, not: []string{"SELF %"}},
		{name: "f shows functions again", msgs: []tea.Msg{table, key("p"), key("f")}, has: []string{"SELF %"}},
		{name: "down scrolls", msgs: []tea.Msg{table, key("down")}, has: []string{"fB"}, not: []string{" fA "}},
		{name: "it does not scroll past the end", msgs: append([]tea.Msg{table}, many(key("down"), 200)...), has: []string{"main"}},
		{name: "space holds the table", msgs: []tea.Msg{table, key(" "), NewTable(window(nil, record(1, "p", time.Second, "new")))}, has: []string{"fA", "PAUSED"}, not: []string{"new"}},
		{name: "space again shows the newest", msgs: []tea.Msg{table, key(" "), NewTable(window(nil, record(1, "p", time.Second, "new"))), key(" ")}, has: []string{"new"}, not: []string{"PAUSED"}},
		{name: "losses stand in the head", msgs: []tea.Msg{NewTable(window([]profile.Loss{{Place: "ring", Count: 3}}))}, has: []string{"\x1b[31;1m", "lost: 3 at ring"}},
		{name: "no names are no alarm", msgs: []tea.Msg{NewTable(window([]profile.Loss{{Place: "exited", Count: 3}}))}, has: []string{"lost: nothing; without names: 3 at exited"}, not: []string{"\x1b[31;1m"}},
	} {
		for _, size := range []tea.WindowSizeMsg{{Width: 100, Height: 24}, {Width: 40, Height: 6}, {Width: 1, Height: 1}} {
			var m tea.Model = NewScreen("this host at 99 Hz", 2, ByFunction)
			for _, msg := range append([]tea.Msg{size}, tt.msgs...) {
				m, _ = m.Update(msg)
			}
			view := m.View().Content
			if size.Width == 100 {
				for _, has := range tt.has {
					if !strings.Contains(view, has) {
						t.Errorf("%s: lacks %q:\n%s", tt.name, has, view)
					}
				}
				for _, not := range tt.not {
					if strings.Contains(view, not) {
						t.Errorf("%s: has %q:\n%s", tt.name, not, view)
					}
				}
			}
			lines := strings.Split(view, "\n")
			if len(lines) > max(size.Height, 5) {
				t.Errorf("%s: %d lines on a screen of %d", tt.name, len(lines), size.Height)
			}
			for _, line := range lines {
				if w := ansi.StringWidth(line); w > size.Width {
					t.Errorf("%s: a line of %d columns on a screen of %d: %q", tt.name, w, size.Width, line)
				}
			}
		}
	}
	if _, cmd := NewScreen("x", 1, ByFunction).Update(key("q")); cmd == nil {
		t.Error("q does not end it")
	}
}

func many(msg tea.Msg, n int) []tea.Msg {
	all := make([]tea.Msg, n)
	for i := range all {
		all[i] = msg
	}
	return all
}
