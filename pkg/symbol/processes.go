// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"time"
)

// errSlow means that the answer did not come within the sample's patience.
var errSlow = errors.New("did not answer in time")

// process returns what is known of the process that a sample names, brought up to date.
func (s *Symbolizer) process(pid int, now time.Time, deadline time.Time) (*process, error) {
	p := s.processes[pid]
	if p == nil {
		p = &process{pid: pid, serial: s.serial()}
		if err := s.begin(p, now, deadline); err != nil && !errors.Is(err, errSlow) {
			return nil, err
		}
		s.remember(p)
	}
	p.used = now
	if err := s.settle(p, now); err != nil {
		if !errors.Is(err, errSlow) {
			s.forget(p)
		}
		return nil, err
	}
	if now.Sub(p.checked) < checkAfter {
		return p, nil
	}
	return s.check(p, now, deadline)
}

// begin opens a process and reads its image.
func (s *Symbolizer) begin(p *process, now, deadline time.Time) error {
	dir, err := openProcess(s.roots.Proc, p.pid)
	if err != nil {
		return err
	}
	p.dir = dir
	err = s.readImage(p, now, deadline)
	if err != nil && !errors.Is(err, errSlow) {
		dir.Close()
	}
	return err
}

// readImage reads the image of a process, new or again.
func (s *Symbolizer) readImage(p *process, now, deadline time.Time) error {
	next, dir := &image{}, p.dir
	p.next = next
	p.pending = s.tasks.start(func() { *next = readImage(dir) })
	if p.pending == nil {
		p.next = nil
		return errSlow
	}
	if !p.pending.wait(deadline.Sub(s.now())) {
		return errSlow
	}
	return s.settle(p, now)
}

// settle takes what a reading has brought since the last sample.
func (s *Symbolizer) settle(p *process, now time.Time) error {
	switch {
	case p.pending.pending():
		return errSlow
	case p.next == nil:
		return nil
	}
	next := *p.next
	p.next, p.pending = nil, nil
	if next.err != nil {
		if len(p.table.Mappings) == 0 {
			return next.err
		}
		p.dead = p.dead || gone(next.err)
		return nil
	}
	p.adopt(next, now, s.serial)
	return nil
}

// check finds out whether a process still is what it was.
func (s *Symbolizer) check(p *process, now, deadline time.Time) (*process, error) {
	p.checked = now
	if p.dead {
		return s.successor(p, now, deadline)
	}
	exe, err := readExe(p.dir)
	switch {
	case err != nil && gone(err):
		p.dead = true
		return s.successor(p, now, deadline)
	case err != nil:
		return p, nil
	case exe != p.exe:
		if err := s.readImage(p, now, deadline); err != nil {
			return nil, err
		}
		p.readAgain(now, true)
	case p.stale(now):
		if err := s.readImage(p, now, deadline); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// successor is the process that has the number of one that ended, or else the
// one that ended: samples taken before are still on their way.
func (s *Symbolizer) successor(p *process, now, deadline time.Time) (*process, error) {
	next := &process{pid: p.pid, serial: s.serial()}
	if err := s.begin(next, now, deadline); err != nil {
		if errors.Is(err, errSlow) {
			closeIf(next.dir)
		}
		return p, nil
	}
	previous := p.table
	next.since, next.previous, next.used = now, &previous, now
	s.forget(p)
	s.remember(next)
	return next, nil
}

func (s *Symbolizer) remember(p *process) {
	if len(s.processes) >= s.cfg.Processes {
		var oldest *process
		for _, q := range s.processes {
			if oldest == nil || q.used.Before(oldest.used) {
				oldest = q
			}
		}
		s.forget(oldest)
	}
	s.processes[p.pid] = p
}

func (s *Symbolizer) forget(p *process) {
	closeIf(p.dir)
	delete(s.processes, p.pid)
}
