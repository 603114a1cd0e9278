// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// losses counts what was lost, by place.
type losses struct {
	mu sync.Mutex
	n  map[string]uint64
}

func (l *losses) lost(place string, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == nil {
		l.n = map[string]uint64{}
	}
	l.n[place] += n
}

func (l *losses) at(place string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n[place]
}

// start makes a Symbolizer of this machine.
func start(t testing.TB, change ...func(*Config, *Roots)) (*Symbolizer, *losses) {
	t.Helper()
	cfg, roots := DefaultConfig(), DefaultRoots()
	cfg.Wait = 5 * time.Second // what a machine under load takes is no matter here
	for _, c := range change {
		c(&cfg, &roots)
	}
	var l losses
	var log io.Writer = io.Discard
	if testing.Verbose() {
		log = os.Stderr
	}
	s, err := New(cfg, roots, l.lost, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, &l
}

// resolve passes one stack through the stage.
func resolve(t testing.TB, s *Symbolizer, pid int, stack ...profile.Frame) profile.Stack {
	t.Helper()
	var got []profile.Sample
	s.Into(collector.SinkFunc(func(sample profile.Sample) { got = append(got, sample) })).
		Put(profile.Sample{Time: time.Now(), PID: pid, Stack: stack})
	if len(got) != 1 || len(got[0].Stack) != len(stack) {
		t.Fatalf("the stage passed on %d samples, want the one", len(got))
	}
	return got[0].Stack
}

func user(addresses ...uint64) (stack []profile.Frame) {
	for _, a := range addresses {
		stack = append(stack, profile.Frame{Realm: profile.RealmUser, Address: a})
	}
	return stack
}

func kernelFrames(addresses ...uint64) (stack []profile.Frame) {
	for _, a := range addresses {
		stack = append(stack, profile.Frame{Realm: profile.RealmKernel, Address: a})
	}
	return stack
}

//go:noinline
func outermost(pcs []uintptr) (int, []runtime.Frame) { return middle(pcs) }

func middle(pcs []uintptr) (int, []runtime.Frame) { return innermost(pcs) } // inlined into outermost

//go:noinline
func innermost(pcs []uintptr) (int, []runtime.Frame) {
	n := runtime.Callers(1, pcs)
	var frames []runtime.Frame
	for it := runtime.CallersFrames(pcs[:n]); ; {
		f, more := it.Next()
		frames = append(frames, f)
		if !more {
			return n, frames
		}
	}
}

func TestOwnGoStackReadsAsTheRuntimeTellsIt(t *testing.T) {
	s, _ := start(t)
	pcs := make([]uintptr, 64)
	n, frames := outermost(pcs)

	// runtime.Callers gives every call an address of its own, also inlined ones; a
	// sample has one address for a function and all that was inlined there.
	var want []string
	var stack []profile.Frame
	stack = append(stack, profile.Frame{Realm: profile.RealmUser, Address: uint64(pcs[0]) - 1})
	for i, pc := range pcs[1:n] {
		if frames[i].Func != nil { // what follows is no longer inlined into the same function
			stack = append(stack, profile.Frame{Realm: profile.RealmUser, Address: uint64(pc)})
		}
	}
	for _, f := range frames {
		want = append(want, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
	}

	var got []string
	for _, f := range resolve(t, s, os.Getpid(), stack...) {
		for _, line := range f.Location.Lines {
			got = append(got, fmt.Sprintf("%s %s:%d", line.Function, line.File, line.Number))
		}
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("stack\n got %s\nwant %s", g, w)
	}
}
