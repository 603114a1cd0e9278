// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// Into returns the stage that fills in each frame's Location and passes the sample to next.
// Its Put may be called by several goroutines, and takes at most Config.Wait
// longer than the lookups themselves.
func (s *Symbolizer) Into(next collector.Sink) collector.Sink {
	return collector.SinkFunc(func(sample profile.Sample) {
		s.name(&sample)
		next.Put(sample)
	})
}

// name fills in the locations of one sample.
func (s *Symbolizer) name(sample *profile.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed() {
		return
	}
	now := s.now()
	v := visit{s: s, now: now, deadline: now.Add(s.cfg.Wait), sample: sample}

	// An address is that of an instruction in the innermost frame of each half of the
	// stack: where the CPU was, and where the process entered the kernel. After a
	// system call the latter is the next instruction, in the same function; after a
	// page fault it is the very instruction, which may be a function's first. All
	// others are return addresses, and belong to the call before them, which may be
	// a function's last.
	var exact = true
	var realm profile.Realm
	for i := range sample.Stack {
		f := &sample.Stack[i]
		if f.Realm == profile.RealmSynthetic {
			continue
		}
		if f.Realm == profile.RealmUser && realm == profile.RealmKernel {
			exact = true
		}
		v.frame(f, exact)
		realm, exact = f.Realm, trampoline(f.Location)
	}
}

// trampoline reports whether a location is what a signal handler returns to. The
// frame above it was interrupted and has made no call.
func trampoline(l *profile.Location) bool { return l.Named() && isTrampoline(l.Lines[0].Function) }

func isTrampoline(name string) bool {
	switch name {
	case "__restore_rt", "__kernel_rt_sigreturn", "runtime.sigreturn__sigaction":
		return true
	}
	return false
}

// A visit is the naming of one sample.
type visit struct {
	s        *Symbolizer
	now      time.Time
	deadline time.Time // until when it waits
	sample   *profile.Sample

	asked   bool // for the process
	process *process
}

// frame fills in one frame's location.
func (v *visit) frame(f *profile.Frame, exact bool) {
	at := address{f.Address, exact}
	var reason string
	switch {
	case f.Location != nil:
		if f.Location.Named() || f.Realm != profile.RealmUser {
			return
		}
		f.Location, reason = v.known(f.Location, exact)
	case f.Realm == profile.RealmKernel:
		f.Location, reason = v.kernel(at)
	default:
		f.Location, reason = v.user(at)
	}
	if f.Location.Named() {
		v.s.stats.Named++
		return
	}
	if reason == "" {
		reason = unnamedNoSymbol
	}
	v.s.stats.Unnamed[reason]++
}

// An address of a frame: of an instruction, or behind a call.
type address struct {
	pc    uint64
	exact bool
}

// lookup is the address of a byte of the instruction.
func (a address) lookup() uint64 {
	if a.exact || a.pc == 0 {
		return a.pc
	}
	return a.pc - 1
}

// user names an address of the sample's process.
func (v *visit) user(at address) (*profile.Location, string) {
	p, reason := v.image()
	if p == nil {
		return v.bare(at), reason
	}
	return v.inProcess(p, at)
}

// bare is the location of an address about which nothing is known.
func (v *visit) bare(at address) *profile.Location {
	return v.s.in.location(profile.Location{Realm: profile.RealmUser, Offset: at.lookup()})
}

// image finds the sample's process once, and counts a sample that comes too late.
func (v *visit) image() (*process, string) {
	if v.asked {
		if v.process == nil {
			return nil, unnamedProcess
		}
		return v.process, ""
	}
	v.asked = true
	if v.sample.PID <= 0 {
		return nil, unnamedProcess
	}
	p, err := v.s.process(v.sample.PID, v.now, v.deadline)
	switch {
	case errors.Is(err, errSlow):
		return nil, unnamedSlow
	case err != nil && gone(err):
		v.s.lost("exited", 1)
		return nil, unnamedProcess
	case err != nil:
		return nil, unnamedProcess
	case !p.ran(v.sample.Time, v.sample.Stack):
		v.s.lost("exec", 1)
		return nil, unnamedProcess
	}
	v.process = p
	v.refreshJIT(p)
	return p, ""
}

// run does work that may block, for as long as the sample's patience lasts.
func (v *visit) run(work func()) (t *task, done bool) {
	t = v.s.tasks.start(work)
	return t, t != nil && t.wait(v.deadline.Sub(v.s.now()))
}
