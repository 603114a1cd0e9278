// SPDX-License-Identifier: Apache-2.0

// Package storetest checks what package store promises, on any engine.
//
// It also makes synthetic node-hours (Synthetic), for benchmarks.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// Open opens the store that lives in dir: empty the first time, holding what was appended
// afterwards.
type Open func(t *testing.T, dir string) store.Store

// Run checks an engine. What needs a disk of its own (ErrFull) or a process of
// its own (a crash) is for the engine's tests.
func Run(t *testing.T, open Open) {
	s := suite{open}
	for _, test := range []struct {
		promise string
		check   func(t *testing.T)
	}{
		{"a batch is still there after closing and opening", s.durable},
		{"a batch sent twice is held once", s.idempotent},
		{"a batch sent again after closing and opening is held once", s.idempotentAcrossOpen},
		{"batches of one call that are the same batch are held once", s.idempotentWithinCall},
		{"a call with a batch that cannot be stored stores none", s.allOrNone},
		{"appending nothing is no error", s.appendNothing},
		{"the durable sequence is the highest held of a boot", s.durableSequence},
		{"matchers select by labels as in Prometheus", s.matchers},
		{"from is included, to is not", s.timeBounds},
		{"samples of a capture and of the always-on profile do not mix", s.captures},
		{"values of one stack add up over nodes, threads and batches", s.addUp},
		{"every sample type keeps its values apart", s.types},
		{"more stacks than the limit are an error", s.limit},
		{"unresolved frames and inlined lines come back as they were", s.frames},
		{"text that is no UTF-8 is stored all the same", s.oddText},
		{"losses come back added up by node and place", s.losses},
		{"the period is that of the batches, or none when they differ", s.period},
		{"label names are those that have a value in the selection", s.labelNames},
		{"label values are those of the selection, cut at the limit", s.labelValues},
		{"readings answer the mean over each step", s.readings},
		{"rates spread a batch over its window", s.rates},
		{"retention by age drops what is older and frees bytes", s.retainAge},
		{"retention by bytes drops the oldest first and frees bytes", s.retainBytes},
		{"a context that is done stops every call", s.deadline},
		{"appending and asking go on at the same time", s.concurrent},
		{"a closed store refuses", s.closed},
	} {
		t.Run(test.promise, test.check)
	}
}

type suite struct{ open Open }

// fresh opens an empty store that is closed with the test, holding batches.
func (s suite) fresh(t *testing.T, batches ...store.Batch) store.Store {
	t.Helper()
	st := s.open(t, t.TempDir())
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	mustAppend(t, st, batches...)
	return st
}

func mustAppend(t *testing.T, st store.Store, batches ...store.Batch) {
	t.Helper()
	if err := st.Append(t.Context(), batches...); err != nil {
		t.Fatalf("append: %v", err)
	}
}

const plenty = 1 << 20

func ask(t *testing.T, st store.Store, typ profile.Type, sel store.Selection) store.Weights {
	t.Helper()
	w, err := st.Stacks(t.Context(), typ, sel, plenty)
	if err != nil {
		t.Fatalf("stacks: %v", err)
	}
	return w
}

func wantStacks(t *testing.T, st store.Store, sel store.Selection, want string) {
	t.Helper()
	if got := folded(ask(t, st, profile.CPU, sel)); got != want {
		t.Errorf("stacks\n got %q\nwant %q", got, want)
	}
}

func (s suite) durable(t *testing.T) {
	dir := t.TempDir()
	st := s.open(t, dir)
	mustAppend(t, st, batch("a", 1, noon, record("x", 5, "leaf", "main")))
	for range 2 {
		if err := st.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		st = s.open(t, dir)
		wantStacks(t, st, always, "main;leaf 5")
		if got, err := st.DurableSequence(t.Context(), "a", "boot-of-a"); err != nil || got != 1 {
			t.Errorf("durable sequence = %d, %v, want 1", got, err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func (s suite) idempotent(t *testing.T) {
	b := batch("a", 1, noon, record("x", 5, "main"))
	b.Losses = []profile.Loss{{Place: "ring", Count: 2}}
	st := s.fresh(t, b)
	mustAppend(t, st, b, batch("a", 2, noon.Add(10*time.Second), record("x", 7, "main")))
	wantStacks(t, st, always, "main 12")
	if got := fmt.Sprint(ask(t, st, profile.CPU, always).Losses); got != "[{a {ring 2}}]" {
		t.Errorf("losses = %s", got)
	}
}

func (s suite) idempotentAcrossOpen(t *testing.T) {
	dir := t.TempDir()
	b := batch("a", 1, noon, record("x", 5, "main"))
	for range 3 {
		st := s.open(t, dir)
		mustAppend(t, st, b)
		wantStacks(t, st, always, "main 5")
		if err := st.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
}

func (s suite) idempotentWithinCall(t *testing.T) {
	b := batch("a", 1, noon, record("x", 5, "main"))
	otherBoot := b
	otherBoot.BootID = "later"
	wantStacks(t, s.fresh(t, b, b, otherBoot), always, "main 10")
}

func (s suite) allOrNone(t *testing.T) {
	st := s.fresh(t)
	bad := batch("a", 2, noon, record("x", 7, "main"))
	bad.End = bad.Start.Add(-time.Hour)
	if err := st.Append(t.Context(), batch("a", 1, noon, record("x", 5, "main")), bad); err == nil {
		t.Fatal("a window that ends before it begins was taken")
	}
	wantStacks(t, st, always, "")
	if got, err := st.DurableSequence(t.Context(), "a", "boot-of-a"); err != nil || got != 0 {
		t.Errorf("durable sequence = %d, %v, want 0", got, err)
	}
}

func (s suite) appendNothing(t *testing.T) {
	st := s.fresh(t)
	mustAppend(t, st)
	mustAppend(t, st, batch("a", 1, noon))
	if got, err := st.DurableSequence(t.Context(), "a", "boot-of-a"); err != nil || got != 1 {
		t.Errorf("durable sequence of an empty batch = %d, %v, want 1", got, err)
	}
}

func (s suite) durableSequence(t *testing.T) {
	st := s.fresh(t,
		batch("a", 3, noon),
		batch("a", 9, noon.Add(-5*time.Hour)),
		batch("b", 20, noon),
	)
	for _, tt := range []struct {
		node, boot string
		want       uint64
	}{{"a", "boot-of-a", 9}, {"b", "boot-of-b", 20}, {"a", "boot-of-b", 0}, {"c", "", 0}} {
		if got, err := st.DurableSequence(t.Context(), tt.node, tt.boot); err != nil || got != tt.want {
			t.Errorf("durable sequence of %s/%s = %d, %v, want %d", tt.node, tt.boot, got, err, tt.want)
		}
	}
}

func (s suite) timeBounds(t *testing.T) {
	st := s.fresh(t,
		batch("a", 1, noon, record("x", 1, "main")),
		batch("a", 2, noon.Add(time.Nanosecond), record("x", 10, "main")),
		batch("a", 3, noon.Add(time.Hour), record("x", 100, "main")),
	)
	for _, tt := range []struct {
		name     string
		from, to time.Time
		want     string
	}{
		{"all", noon, noon.Add(2 * time.Hour), "main 111"},
		{"from is included", noon.Add(time.Nanosecond), noon.Add(2 * time.Hour), "main 110"},
		{"to is excluded", noon, noon.Add(time.Hour), "main 11"},
		{"an empty range", noon, noon, ""},
		{"a range before everything", noon.Add(-time.Hour), noon, ""},
		{"times that no clock says", time.Time{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "main 111"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantStacks(t, st, store.Selection{From: tt.from, To: tt.to}, tt.want)
		})
	}
}

func (s suite) captures(t *testing.T) {
	captured := batch("a", 2, noon, record("x", 10, "main"))
	captured.Capture = "01J"
	st := s.fresh(t, batch("a", 1, noon, record("x", 1, "main")), captured)
	wantStacks(t, st, always, "main 1")
	sel := always
	sel.Capture = "01J"
	wantStacks(t, st, sel, "main 10")
	sel.Capture = "other"
	wantStacks(t, st, sel, "")
}

func (s suite) limit(t *testing.T) {
	st := s.fresh(t, batch("a", 1, noon, record("x", 1, "one"), record("x", 1, "two"), record("x", 1, "three")))
	if w, err := st.Stacks(t.Context(), profile.CPU, always, 3); err != nil || len(w.Stacks) != 3 {
		t.Errorf("limit 3: %d stacks, %v", len(w.Stacks), err)
	}
	if _, err := st.Stacks(t.Context(), profile.CPU, always, 2); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("limit 2: err = %v, want ErrTooLarge", err)
	}
}

func (s suite) deadline(t *testing.T) {
	st := s.fresh(t, batch("a", 1, noon, record("x", 1, "main")))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, call := range map[string]func() error{
		"stacks":           func() error { _, err := st.Stacks(ctx, profile.CPU, always, plenty); return err },
		"types":            func() error { _, err := st.Types(ctx, always); return err },
		"label names":      func() error { _, err := st.LabelNames(ctx, always); return err },
		"label values":     func() error { _, _, err := st.LabelValues(ctx, "comm", always, plenty); return err },
		"readings":         func() error { _, err := st.Readings(ctx, "m", always, time.Minute); return err },
		"rates":            func() error { _, err := st.Rates(ctx, profile.CPU, always, time.Minute); return err },
		"durable sequence": func() error { _, err := st.DurableSequence(ctx, "a", ""); return err },
		"append":           func() error { return st.Append(ctx, batch("a", 2, noon)) },
	} {
		if err := call(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: err = %v, want DeadlineExceeded", name, err)
		}
	}
	wantStacks(t, st, always, "main 1")
}

func (s suite) closed(t *testing.T) {
	st := s.open(t, t.TempDir())
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Append(t.Context(), batch("a", 1, noon)); err == nil {
		t.Error("append after close succeeded")
	}
	if err := st.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
