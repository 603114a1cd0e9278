// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// How a Runner waits. A failure doubles the wait before the next try; a run that
// held for steadyAfter sets it back.
const (
	firstWait   = time.Second
	longestWait = time.Minute
	steadyAfter = time.Minute
	stopWithin  = 5 * time.Second
)

// A Phase is where a collector stands.
type Phase string

const (
	Starting    Phase = "starting"    // its goroutine has not come to it yet
	Running     Phase = "running"     // samples may come
	Unavailable Phase = "unavailable" // this host cannot; not tried again
	Failed      Phase = "failed"      // will be tried again
	Stopping    Phase = "stopping"    // told to stop, still runs
	Stopped     Phase = "stopped"     // ended without an error
)

// A State says how one collector fares.
type State struct {
	Name     string
	Phase    Phase
	Err      error     // why it is Unavailable, or how its last run failed; nil when it did not
	Since    time.Time // when the phase began
	Restarts uint64    // how often it was started again after a failure
	Panics   uint64    // how many of its failures were panics
}

// A Runner runs a set of collectors, each in a goroutine of its own. One that
// fails or panics is started again after a growing wait; one whose host cannot
// do it is left alone; neither touches the others.
//
// Set, Stop and States may be called from any goroutine, also before Run. Run is
// called once.
type Runner struct {
	log *slog.Logger
	out Sink

	mu    sync.Mutex
	slots map[string]*slot
	ctx   context.Context // of Run; nil before it
	wg    sync.WaitGroup
}

// slot is the place of one collector: who holds the name now. Runner.mu guards it.
type slot struct {
	next   Collector          // to be run; nil when it was taken, or when nothing shall run
	wake   chan struct{}      // holds a token when next was changed
	cancel context.CancelFunc // ends the present run; nil between runs
	state  State
}

// NewRunner makes a Runner whose collectors write to out.
func NewRunner(log *slog.Logger, out Sink) *Runner {
	return &Runner{log: log, out: out, slots: make(map[string]*slot)}
}

// Set adds c to the set, or puts it in the place of the collector of the same
// name: that one is stopped, and c starts as soon as it has returned. A change of
// configuration at run time is a new Collector made with it. Set does not wait.
func (r *Runner) Set(c Collector) {
	r.mu.Lock()
	defer r.mu.Unlock()

	name := c.Name()
	s, ok := r.slots[name]
	if !ok {
		s = &slot{wake: make(chan struct{}, 1), state: State{Name: name}}
		s.enter(Starting)
		r.slots[name] = s
		r.supervise(s)
	}
	s.change(c)
}

// Stop ends the collector of that name, if there is one, until it is Set again.
// It does not wait.
func (r *Runner) Stop(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.slots[name]; ok {
		s.change(nil)
	}
}

// Run runs the collectors until ctx is done and all have returned. Of those that
// have not after five seconds the error tells the names; their goroutines are lost.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	for _, s := range r.slots {
		r.supervise(s)
	}
	r.mu.Unlock()

	<-ctx.Done()
	done := make(chan struct{})
	go func() {
		r.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(stopWithin):
		return fmt.Errorf("stop collectors: %s still running after %v", strings.Join(r.stillRunning(), ", "), stopWithin)
	}
}

// States lists the collectors by name.
func (r *Runner) States() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var states []State
	for _, name := range slices.Sorted(maps.Keys(r.slots)) {
		states = append(states, r.slots[name].state)
	}
	return states
}

func (r *Runner) stillRunning() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.slots)) {
		if r.slots[name].cancel != nil {
			names = append(names, name)
		}
	}
	return names
}

// supervise starts the goroutine of a slot once Run runs. r.mu is held.
func (r *Runner) supervise(s *slot) {
	ctx := r.ctx
	if ctx == nil || ctx.Err() != nil {
		return
	}
	r.wg.Go(func() {
		var (
			c     Collector
			wait  time.Duration
			retry <-chan time.Time
		)
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
				c, wait, retry = r.take(s), 0, nil
			case <-retry:
				r.countRestart(s)
			}
			if c == nil {
				continue
			}

			held, err := r.try(ctx, s, c)
			if !r.judge(s, err) {
				retry = nil
				continue
			}
			if held >= steadyAfter {
				wait = 0
			}
			wait = min(max(2*wait, firstWait), longestWait)
			retry = time.After(jitter(wait))
		}
	})
}

// take empties the slot's place for the next collector.
func (r *Runner) take(s *slot) Collector {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-s.wake: // changed again since the token that led here
	default:
	}
	c := s.next
	s.next = nil
	s.state.Err = nil
	if c == nil {
		s.enter(Stopped)
	}
	return c
}

// try runs c once, until it returns, ctx is done or the slot is changed.
func (r *Runner) try(ctx context.Context, s *slot, c Collector) (held time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	r.mu.Lock()
	s.cancel = cancel
	if len(s.wake) > 0 { // changed since take
		cancel()
	}
	s.enter(Running)
	r.mu.Unlock()

	r.log.Info("collector starts", "collector", c.Name())
	start := time.Now()
	err = r.recovered(ctx, s, c)

	r.mu.Lock()
	s.cancel = nil
	r.mu.Unlock()
	return time.Since(start), err
}

// recovered runs c and turns a panic of its own goroutine into an error.
func (r *Runner) recovered(ctx context.Context, s *slot, c Collector) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		r.log.Error("collector panicked", "collector", c.Name(), "panic", p, "stack", string(debug.Stack()))
		r.mu.Lock()
		s.state.Panics++
		r.mu.Unlock()
		err = fmt.Errorf("%s: panic: %v", c.Name(), p)
	}()
	return c.Run(ctx, r.out)
}

// judge notes how a run ended and says whether it is to be tried again.
func (r *Runner) judge(s *slot, err error) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := s.state.Name
	s.state.Err = err
	switch {
	case err == nil:
		s.enter(Stopped)
		r.log.Info("collector stopped", "collector", name)
		return false
	case errors.Is(err, ErrUnavailable):
		s.enter(Unavailable)
		r.log.Info("collector unavailable", "collector", name, "reason", err)
		return false
	default:
		s.enter(Failed)
		r.log.Warn("collector failed", "collector", name, "err", err)
		return true
	}
}

func (r *Runner) countRestart(s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.state.Restarts++
}

// change puts next in place and ends what runs. Runner.mu is held.
func (s *slot) change(next Collector) {
	s.next = next
	select {
	case s.wake <- struct{}{}:
	default: // the token for an earlier change is still there
	}
	if s.cancel != nil {
		s.cancel()
		s.enter(Stopping)
	}
}

// enter notes a new phase. Runner.mu is held.
func (s *slot) enter(p Phase) { s.state.Phase, s.state.Since = p, time.Now() }

// jitter spreads a wait over its upper half, so that collectors that failed
// together do not try together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
