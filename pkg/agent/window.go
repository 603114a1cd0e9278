// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"hash/maphash"
	"slices"
	"time"

	"diagon.dev/diagon/pkg/profile"
)

// maxRecords bounds a window's memory: a record of 30 frames takes about 1 KiB.
const maxRecords = 32 << 10

// maxWindowReadings bounds the readings of one window.
const maxWindowReadings = 16 << 10

// A window adds up samples that have the same subject, thread name and stack. It belongs to
// one goroutine.
type window struct {
	lost    func(place string, n uint64)
	seed    maphash.Seed
	start   time.Time
	records []profile.Record
	index   map[uint64]int // hash of a record -> its place in records
	// readings wait for the end of the window.
	readings []profile.Reading
	samples  uint64 // samples added up
}

func newWindow(start time.Time, lost func(string, uint64)) *window {
	return &window{lost: lost, seed: maphash.MakeSeed(), start: start, index: make(map[uint64]int)}
}

// Put adds a sample, or counts it as lost at "window" when its stack is a new one and the
// window is full. It is a collector.Sink.
func (w *window) Put(s profile.Sample) {
	r := profile.Record{Subject: s.Subject, Thread: s.Thread, Device: s.Device, Request: s.Request, Stack: s.Stack, Values: s.Values}
	// Two records of one hash would be told apart at the next free number.
	for h := w.hash(&r); ; h++ {
		i, taken := w.index[h]
		if !taken {
			w.add(h, r)
			return
		}
		if same(&w.records[i], &r) {
			w.records[i].Values.Add(s.Values)
			w.samples++
			return
		}
	}
}

func (w *window) add(hash uint64, r profile.Record) {
	if w.full() {
		w.lost("window", 1)
		return
	}
	w.index[hash] = len(w.records)
	w.records = append(w.records, r)
	w.samples++
}

func (w *window) note(r profile.Reading) {
	if len(w.readings) >= maxWindowReadings {
		w.lost("readings", 1)
		return
	}
	w.readings = append(w.readings, r)
}

func (w *window) full() bool { return len(w.records) >= maxRecords }

// hash goes by pointers: equal subjects and locations are shared.
func (w *window) hash(r *profile.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	maphash.WriteComparable(&h, r.Subject)
	h.WriteString(r.Thread)
	h.WriteString(r.Device)
	h.WriteString(r.Request)
	for i := range r.Stack {
		f := &r.Stack[i]
		if f.Location != nil {
			maphash.WriteComparable(&h, f.Location)
		} else {
			maphash.WriteComparable(&h, f.Address)
		}
	}
	return h.Sum64()
}

func same(a, b *profile.Record) bool {
	return a.Subject == b.Subject && a.Thread == b.Thread && a.Device == b.Device && a.Request == b.Request &&
		slices.EqualFunc(a.Stack, b.Stack, func(x, y profile.Frame) bool {
			return x.Location == y.Location && x.Realm == y.Realm && (x.Location != nil || x.Address == y.Address)
		})
}

// take ends the window and begins the next one.
func (w *window) take(end time.Time) (profile.Batch, uint64) {
	b := profile.Batch{Start: w.start, End: end, Records: w.records, Readings: w.readings, PeriodNS: period(w.records)}
	samples := w.samples
	w.start, w.records, w.readings, w.samples = end, nil, nil, 0
	clear(w.index)
	return b, samples
}

// period is the CPU time that one sample stands for: the mean, should the rate have
// changed within the window.
func period(records []profile.Record) int64 {
	var sum profile.Values
	for i := range records {
		sum.Add(records[i].Values)
	}
	if sum[profile.Samples] == 0 {
		return 0
	}
	return sum[profile.CPU] / sum[profile.Samples]
}
