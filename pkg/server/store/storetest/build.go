// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// noon is the instant that the suite's batches lie around: in the past, on an hour.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// always selects everything of the always-on profile near noon.
var always = store.Selection{From: noon.Add(-24 * time.Hour), To: noon.Add(24 * time.Hour)}

// selecting adds matchers, written as in Prometheus: name, operator, value.
func selecting(t *testing.T, sel store.Selection, matchers ...string) store.Selection {
	t.Helper()
	for _, text := range matchers {
		sel.Matchers = append(slices.Clip(sel.Matchers), matcher(t, text))
	}
	return sel
}

func matcher(t *testing.T, text string) *labels.Matcher {
	t.Helper()
	for _, op := range []labels.MatchType{labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp, labels.MatchEqual} {
		if name, value, ok := strings.Cut(text, op.String()); ok {
			m, err := labels.NewMatcher(op, name, value)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("no operator in %q", text)
	return nil
}

// batch makes a batch of node that begins at start and lasts ten seconds.
func batch(node string, sequence uint64, start time.Time, records ...profile.Record) store.Batch {
	return store.Batch{
		Node:         node,
		BootID:       "boot-of-" + node,
		Sequence:     sequence,
		AgentVersion: "v0.1.0",
		Batch:        profile.Batch{Start: start, End: start.Add(10 * time.Second), Records: records, PeriodNS: 52631578},
	}
}

// record makes one of comm, with a CPU value; frames are written leaf first.
func record(comm string, cpu int64, frames ...string) profile.Record {
	return profile.Record{Subject: &profile.Subject{PID: 7, Comm: comm}, Stack: stack(frames...), Values: profile.Values{profile.CPU: cpu}}
}

func stack(frames ...string) profile.Stack {
	s := make(profile.Stack, len(frames))
	for i, function := range frames {
		l := &profile.Location{
			Mapping: &profile.Mapping{Path: "/usr/bin/" + function, BuildID: "ab12"},
			Offset:  uint64(len(function)),
			Lines:   []profile.Line{{Function: function, File: function + ".c", Number: 3}},
		}
		s[i] = profile.Frame{Address: 0x1000, Location: l}
	}
	return s
}

// folded writes weights as lines "root;leaf value", sorted.
func folded(w store.Weights) string {
	lines := make([]string, len(w.Stacks))
	for i, weight := range w.Stacks {
		var names []string
		for _, f := range weight.Stack {
			names = append(names, f.Location.Names()...)
		}
		slices.Reverse(names)
		lines[i] = fmt.Sprintf("%s %d", strings.Join(names, ";"), weight.Value)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// lines joins what is expected of folded.
func lines(all ...string) string {
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// written formats series as "metric{labels} time=value ...", a line each.
func written(all []store.Series) string {
	out := make([]string, len(all))
	for i, s := range all {
		var b strings.Builder
		b.WriteString(s.Metric + "{")
		for j, l := range s.Labels {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(l.Name + "=" + l.Value)
		}
		b.WriteByte('}')
		for _, p := range s.Points {
			fmt.Fprintf(&b, " %s=%.6g", p.Time.UTC().Format("15:04:05"), p.Value)
		}
		out[i] = b.String()
	}
	return lines(out...)
}
