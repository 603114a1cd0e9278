// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// script is a collector whose nth run is the nth step; the last one repeats.
type script struct {
	name    string
	steps   []step
	starts  []time.Time
	running bool
}

type step func(ctx context.Context) error

func (s *script) Name() string { return s.name }

func (s *script) Run(ctx context.Context, out collector.Sink) error {
	s.running = true
	defer func() { s.running = false }()
	step := s.steps[min(len(s.starts), len(s.steps)-1)]
	s.starts = append(s.starts, time.Now())
	out.Put(profile.Sample{Thread: s.name})
	return step(ctx)
}

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func fails(context.Context) error { return errors.New("no luck") }

func panics(context.Context) error { panic("out of cheese") }

func cannot(context.Context) error { return fmt.Errorf("%w: no such device", collector.ErrUnavailable) }

func failsAfter(d time.Duration) step {
	return func(ctx context.Context) error {
		time.Sleep(d)
		return errors.New("no luck")
	}
}

// deaf does not listen to its context for d.
func deaf(d time.Duration) step {
	return func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(d)
		return nil
	}
}

// in runs test in a bubble of virtual time with a Runner that runs.
func in(t *testing.T, test func(t *testing.T, r *collector.Runner, stop func() error, log *strings.Builder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := collector.NewRunner(slog.New(slog.NewTextHandler(&log, nil)), collector.SinkFunc(func(profile.Sample) {}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		stop := func() error {
			cancel()
			return <-ended
		}
		test(t, r, stop, &log)
		cancel()
		synctest.Wait()
	})
}

func phases(r *collector.Runner) string {
	var all []string
	for _, s := range r.States() {
		all = append(all, s.Name+" "+string(s.Phase))
	}
	return strings.Join(all, ", ")
}

func TestRunnerPhases(t *testing.T) {
	for _, tt := range []struct {
		name     string
		steps    []step
		after    time.Duration
		want     string
		err      string
		restarts uint64
		panics   uint64
	}{
		{name: "a collector that runs is running", steps: []step{untilDone}, after: time.Hour, want: "c running"},
		{name: "what the host cannot do is not tried again", steps: []step{cannot}, after: time.Hour, want: "c unavailable", err: "no such device"},
		{name: "a failure is shown while the next try is waited for", steps: []step{fails}, after: 0, want: "c failed", err: "no luck"},
		{name: "a failure is followed by another try", steps: []step{fails, untilDone}, after: time.Minute, want: "c running", err: "no luck", restarts: 1},
		{name: "a panic is a failure", steps: []step{panics, untilDone}, after: time.Minute, want: "c running", err: "out of cheese", restarts: 1, panics: 1},
		{name: "a collector that ends by itself is left alone", steps: []step{func(context.Context) error { return nil }}, after: time.Hour, want: "c stopped"},
		{name: "a host that can no longer is not tried again", steps: []step{fails, cannot}, after: time.Hour, want: "c unavailable", err: "no such device", restarts: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, r *collector.Runner, stop func() error, log *strings.Builder) {
				r.Set(&script{name: "c", steps: tt.steps})
				time.Sleep(tt.after)
				synctest.Wait()
				if got := phases(r); got != tt.want {
					t.Errorf("phases %q, want %q", got, tt.want)
				}
				s := r.States()[0]
				if got := fmt.Sprint(s.Err); tt.err == "" && s.Err != nil || !strings.Contains(got, tt.err) {
					t.Errorf("err = %v, want one saying %q", s.Err, tt.err)
				}
				if s.Restarts != tt.restarts || s.Panics != tt.panics {
					t.Errorf("%d restarts and %d panics, want %d and %d", s.Restarts, s.Panics, tt.restarts, tt.panics)
				}
				if tt.panics > 0 && !strings.Contains(log.String(), "runner_test.go") {
					t.Error("the log has no stack of the panic")
				}
				if err := stop(); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
			})
		})
	}
}

func TestRunnerWaitsLongerAfterEachFailure(t *testing.T) {
	in(t, func(t *testing.T, r *collector.Runner, stop func() error, _ *strings.Builder) {
		c := &script{name: "c", steps: []step{fails}}
		r.Set(c)
		time.Sleep(10 * time.Minute)
		stop()

		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
			want *= time.Second
			got := c.starts[i+1].Sub(c.starts[i])
			if got < want/2 || got > want {
				t.Errorf("wait %d = %v, want between %v and %v", i, got, want/2, want)
			}
		}
	})
}

func TestRunnerForgetsFailuresAfterASteadyRun(t *testing.T) {
	in(t, func(t *testing.T, r *collector.Runner, stop func() error, _ *strings.Builder) {
		c := &script{name: "c", steps: []step{fails, fails, fails, fails, failsAfter(2 * time.Minute), untilDone}}
		r.Set(c)
		time.Sleep(10 * time.Minute)
		stop()

		if wait := c.starts[5].Sub(c.starts[4]) - 2*time.Minute; wait > time.Second {
			t.Errorf("wait after a steady run = %v, want a second at most", wait)
		}
	})
}

func TestRunnerReplaces(t *testing.T) {
	in(t, func(t *testing.T, r *collector.Runner, stop func() error, _ *strings.Builder) {
		slow := &script{name: "c", steps: []step{deaf(500 * time.Millisecond)}}
		fast := &script{name: "c", steps: []step{untilDone}}
		r.Set(slow)
		synctest.Wait()
		began := time.Now()
		r.Set(fast)
		synctest.Wait()
		if got := phases(r); got != "c stopping" {
			t.Errorf("phases %q while the old one still runs, want stopping", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := phases(r); got != "c running" {
			t.Errorf("phases %q, want running", got)
		}
		if len(fast.starts) != 1 {
			t.Fatalf("the new one started %d times, want once", len(fast.starts))
		}
		if waited := fast.starts[0].Sub(began); waited != 500*time.Millisecond {
			t.Errorf("the new one started after %v, want right after the old one returned", waited)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(slow.starts) != 1 || len(fast.starts) != 1 {
			t.Errorf("starts: %d of the old, %d of the new, want one each", len(slow.starts), len(fast.starts))
		}
		stop()
	})
}

func TestRunnerReplacesOneThatWaitsForItsNextTry(t *testing.T) {
	in(t, func(t *testing.T, r *collector.Runner, stop func() error, _ *strings.Builder) {
		r.Set(&script{name: "c", steps: []step{fails}})
		synctest.Wait()
		r.Set(&script{name: "c", steps: []step{untilDone}})
		synctest.Wait()
		if got := phases(r); got != "c running" {
			t.Errorf("phases %q, want running at once", got)
		}
		stop()
	})
}

func TestRunnerSetsOnlyTheNewestOfMany(t *testing.T) {
	in(t, func(t *testing.T, r *collector.Runner, stop func() error, _ *strings.Builder) {
		all := make([]*script, 10)
		for i := range all {
			all[i] = &script{name: "c", steps: []step{untilDone}}
			r.Set(all[i])
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := phases(r); got != "c running" || !all[9].running {
			t.Errorf("phases %q and the newest runs = %t, want running", got, all[9].running)
		}
		if slices.ContainsFunc(all[:9], func(c *script) bool { return c.running }) {
			t.Error("an older one still runs")
		}
		stop()
	})
}

func TestRunnerStopsOne(t *testing.T) {
	in(t, func(t *testing.T, r *collector.Runner, stop func() error, _ *strings.Builder) {
		failing := &script{name: "failing", steps: []step{fails}}
		r.Set(failing)
		r.Set(&script{name: "good", steps: []step{untilDone}})
		r.Set(&script{name: "other", steps: []step{untilDone}})
		synctest.Wait()
		r.Stop("failing")
		r.Stop("good")
		r.Stop("nobody")
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := phases(r); got != "failing stopped, good stopped, other running" {
			t.Errorf("phases %q", got)
		}
		if len(failing.starts) != 1 {
			t.Errorf("the stopped one was tried %d times, want once", len(failing.starts))
		}
		r.Set(&script{name: "good", steps: []step{untilDone}})
		synctest.Wait()
		if got := phases(r); got != "failing stopped, good running, other running" {
			t.Errorf("phases %q once it was set again", got)
		}
		stop()
	})
}

func TestRunnerRunsWhatWasSetBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := collector.NewRunner(slog.New(slog.DiscardHandler), collector.SinkFunc(func(profile.Sample) {}))
		r.Set(&script{name: "c", steps: []step{untilDone}})
		if got := phases(r); got != "c starting" {
			t.Errorf("phases %q before Run, want starting", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			time.Sleep(time.Second / 2)
			if got := phases(r); got != "c running" {
				t.Errorf("phases %q, want running", got)
			}
		}()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestRunnerNamesWhoDoesNotStop(t *testing.T) {
	in(t, func(t *testing.T, r *collector.Runner, stop func() error, _ *strings.Builder) {
		r.Set(&script{name: "good", steps: []step{untilDone}})
		r.Set(&script{name: "stuck", steps: []step{deaf(time.Minute)}})
		synctest.Wait()
		began := time.Now()
		err := stop()
		if err == nil || !strings.Contains(err.Error(), "stuck") || strings.Contains(err.Error(), "good") {
			t.Errorf("Run = %v, want an error naming the stuck one alone", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Run took %v to give up, want 5s", took)
		}
		time.Sleep(time.Minute)
	})
}
