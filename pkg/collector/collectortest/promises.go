// SPDX-License-Identifier: Apache-2.0

// Package collectortest checks what package collector says of every collector.
package collectortest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// runFor is how long a run of the suite lasts: long enough for a collector to have something to say.
const runFor = 300 * time.Millisecond

// Promises runs c several times and checks what package collector says of every
// collector. A host that cannot run it skips, for that reason alone.
//
// What it counts, it counts in the whole process: the test that calls it must
// not run in parallel with others.
func Promises(t *testing.T, c collector.Collector) {
	t.Run("has a name", func(t *testing.T) {
		if c.Name() == "" {
			t.Error("Name() is empty")
		}
	})
	stops := t.Run("stops and may run again", func(t *testing.T) {
		for range 2 {
			run(t, c, new(counter), runFor)
		}
	})
	if !stops { // what still runs would be blamed on the next run
		return
	}
	t.Run("is silent after Run has returned", func(t *testing.T) {
		out := new(counter)
		run(t, c, out, runFor)
		n := out.Load()
		time.Sleep(runFor)
		if late := out.Load() - n; late != 0 {
			t.Errorf("%d samples came after Run had returned", late)
		}
	})
	t.Run("lets go of every goroutine", func(t *testing.T) {
		before := goleak.IgnoreCurrent()
		run(t, c, new(counter), runFor)
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
	t.Run("lets go of every file and kernel object", func(t *testing.T) {
		run(t, c, new(counter), runFor) // what is opened once and for all, is open now
		before := held(t)
		run(t, c, new(counter), runFor)
		for what, n := range held(t) {
			if more := n - before[what]; more > 0 {
				t.Errorf("%d more of %q than before Run", more, what)
			}
		}
	})
	t.Run("starts nothing when already cancelled", func(t *testing.T) {
		out := new(counter)
		run(t, c, out, 0)
		if n := out.Load(); n != 0 {
			t.Errorf("%d samples although it was cancelled from the start", n)
		}
	})
}

// patience is how long Run may take to return. It promises a second; a machine
// shared by many tests may need more for the same work.
const patience = 5 * time.Second

// counter is a Sink that counts.
type counter struct{ atomic.Uint64 }

func (c *counter) Put(profile.Sample) { c.Add(1) }

// run lets c run for d and fails the test unless Run then returns nil soon.
func run(t *testing.T, c collector.Collector, out collector.Sink, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, out) }()
	select {
	case err := <-done:
		if errors.Is(err, collector.ErrUnavailable) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("Run = %v, want nil once its context is done", err)
		}
	case <-time.After(d + patience):
		t.Fatalf("Run still runs %v after its context was done", patience)
	}
}
