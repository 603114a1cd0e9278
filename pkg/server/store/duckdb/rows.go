// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// rows is a batch as the tables hold it. It is made by the goroutine that
// appends, so that the one writer has little left to do.
type rows struct {
	stream       stream
	sequence     uint64
	agentVersion string
	capture      string
	start, end   int64
	first, last  int64
	period       int64

	samples  []sampleRow
	readings []readingRow
	losses   []profile.Loss

	// What the rows speak of, by identifier.
	stacks   map[uint64][]uint64
	frames   map[uint64]*profile.Location
	subjects map[uint64]subject
	series   map[uint64]seriesRow
}

type sampleRow struct {
	subject, stack uint64
	value          int64
	typ            uint8
}

type readingRow struct {
	ts     int64
	series uint64
	value  float64
}

type seriesRow struct {
	metric string
	labels profile.Labels
}

// The times that a BIGINT of nanoseconds, and Unix time, can say.
var (
	minTime = time.Unix(0, 0)
	maxTime = time.Unix(0, math.MaxInt64)
)

// tabulate turns a batch into rows: adds up what has the same subject, type and stack.
func tabulate(b store.Batch) (*rows, error) {
	if b.Start.Before(minTime) || b.Start.After(maxTime) || b.End.Before(b.Start) || b.End.After(maxTime) {
		return nil, fmt.Errorf("batch %d of node %q: its window from %v to %v makes no sense: check the node's clock", b.Sequence, b.Node, b.Start, b.End)
	}
	r := &rows{
		stream:       stream{clean(b.Node), clean(b.BootID)},
		sequence:     b.Sequence,
		agentVersion: clean(b.AgentVersion),
		capture:      clean(b.Capture),
		start:        b.Start.UnixNano(),
		end:          b.End.UnixNano(),
		period:       b.PeriodNS,
		losses:       b.Losses,
		stacks:       make(map[uint64][]uint64),
		frames:       make(map[uint64]*profile.Location),
		subjects:     make(map[uint64]subject),
		series:       make(map[uint64]seriesRow),
	}
	r.first, r.last = r.start, r.start

	t := tabulator{rows: r, locations: make(map[*profile.Location]uint64)}
	for i := range b.Records {
		t.record(&b.Records[i])
	}
	r.samples = addUp(r.samples)
	for _, reading := range b.Readings {
		if err := t.reading(reading); err != nil {
			return nil, fmt.Errorf("batch %d of node %q: %w", b.Sequence, b.Node, err)
		}
	}
	return r, nil
}

type tabulator struct {
	*rows
	hash      hasher
	locations map[*profile.Location]uint64
	path      []uint64
}

func (t *tabulator) record(rec *profile.Record) {
	stackID := t.stack(rec.Stack)
	s := subjectOf(rec)
	subjectID := t.hash.subject(s)
	t.subjects[subjectID] = s
	for typ, value := range rec.Values {
		if value != 0 {
			t.samples = append(t.samples, sampleRow{subject: subjectID, stack: stackID, value: value, typ: typeNumbers[profile.Type(typ)]})
		}
	}
}

func (t *tabulator) stack(s profile.Stack) uint64 {
	t.path = t.path[:0]
	for i := range s {
		t.path = append(t.path, t.frame(&s[i]))
	}
	id := t.hash.stack(t.path)
	if _, ok := t.stacks[id]; !ok {
		t.stacks[id] = slices.Clone(t.path)
	}
	return id
}

// frame identifies a frame by its place. A frame that nobody has looked up is at its address, in no mapping.
func (t *tabulator) frame(f *profile.Frame) uint64 {
	l := f.Location
	if l == nil {
		l = &profile.Location{Realm: f.Realm, Offset: f.Address}
		id := t.hash.frame(l)
		t.frames[id] = l
		return id
	}
	if id, ok := t.locations[l]; ok {
		return id
	}
	id := t.hash.frame(l)
	t.locations[l] = id
	t.frames[id] = l
	return id
}

func (t *tabulator) reading(r profile.Reading) error {
	if r.Time.Before(minTime) || r.Time.After(maxTime) {
		return fmt.Errorf("reading %q: its time %v makes no sense: check the node's clock", r.Metric, r.Time)
	}
	ts := r.Time.UnixNano()
	t.first, t.last = min(t.first, ts), max(t.last, ts)
	id := t.hash.series(r.Metric, r.Labels)
	t.series[id] = seriesRow{r.Metric, r.Labels}
	t.readings = append(t.readings, readingRow{ts: ts, series: id, value: r.Value})
	return nil
}

func subjectOf(rec *profile.Record) subject {
	s := subject{Thread: clean(rec.Thread), Device: clean(rec.Device), Ioctl: clean(rec.Request)}
	p := rec.Subject
	if p == nil {
		return s
	}
	s.PID = p.PID
	s.Comm, s.ContainerID = clean(p.Comm), clean(p.ContainerID)
	s.Namespace, s.Pod, s.Container = clean(p.Namespace), clean(p.Pod), clean(p.Container)
	s.Workload, s.WorkloadKind, s.Rank = clean(p.Workload), clean(p.WorkloadKind), clean(p.Rank)
	return s
}

// addUp sorts the samples and joins those that differ only in value. Sorted
// columns are also the ones that compress.
func addUp(samples []sampleRow) []sampleRow {
	slices.SortFunc(samples, func(a, b sampleRow) int {
		return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.subject, b.subject), cmp.Compare(a.stack, b.stack))
	})
	out := samples[:0]
	for _, s := range samples {
		if n := len(out); n > 0 && out[n-1].typ == s.typ && out[n-1].subject == s.subject && out[n-1].stack == s.stack {
			out[n-1].value += s.value
			continue
		}
		out = append(out, s)
	}
	return out
}
