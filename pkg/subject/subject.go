// SPDX-License-Identifier: Apache-2.0

// Package subject answers: whose sample is this? It goes from a process id to the
// process, from the process to its container.
//
// What it learns is a profile.Subject, shared by all samples of one process. It
// reads /proc when it first sees a process and again now and then, since a
// process may exec and its id may be used again.
package subject

import (
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// Config bounds what the package keeps.
type Config struct {
	Processes int           // how many processes are remembered
	Recheck   time.Duration // how long a process is believed to be what it was
}

// DefaultConfig fits a large node: about 200 bytes a process.
func DefaultConfig() Config { return Config{Processes: 16384, Recheck: 10 * time.Second} }

// Validate names the field that is out of bounds.
func (c Config) Validate() error {
	if c.Processes < 1 {
		return fmt.Errorf("subject: Processes is %d, want at least 1", c.Processes)
	}
	if c.Recheck < time.Second {
		return fmt.Errorf("subject: Recheck is %v, want at least 1s", c.Recheck)
	}
	return nil
}

// A Resolver remembers processes. Its methods may be called from several goroutines.
type Resolver struct {
	cfg  Config
	proc string
	now  func() time.Time

	mu    sync.Mutex
	known *lru.LRU[int, entry]
}

type entry struct {
	subject *profile.Subject
	start   uint64 // clock ticks after boot; tells two processes of one id apart
	checked time.Time
	settled bool // seen twice: what it is part of does not change any more
}

// New makes a Resolver that reads processes below proc, usually "/proc".
func New(cfg Config, proc string, now func() time.Time) (*Resolver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	known, err := lru.NewLRU[int, entry](cfg.Processes, nil)
	if err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	return &Resolver{cfg: cfg, proc: proc, now: now, known: known}, nil
}

// Into returns the stage that fills in each sample's Subject and hands it to next.
func (r *Resolver) Into(next collector.Sink) collector.Sink {
	return collector.SinkFunc(func(s profile.Sample) {
		s.Subject = r.Subject(s.PID)
		next.Put(s)
	})
}

// nobody is the subject of samples whose process is in no /proc that the agent sees.
var nobody = &profile.Subject{}

// Subject says what is known of a process. A process that has gone keeps what was
// known of it; one that was never seen alive has its id and no more.
func (r *Resolver) Subject(pid int) *profile.Subject {
	if pid == 0 {
		return nobody
	}
	r.mu.Lock()
	defer r.mu.Unlock()

	now := r.now()
	e, ok := r.known.Get(pid)
	if ok && now.Sub(e.checked) < r.cfg.Recheck {
		return e.subject
	}
	e = r.look(pid, e)
	e.checked = now
	r.known.Add(pid, e)
	return e.subject
}

// look reads a process anew. It keeps the old Subject when nothing has changed, so
// that records of one process go on adding up. A runtime moves a process into its
// container, and an exec fills in the environment, just after the process begins: so the
// second look reads all again, and later ones, which are many, only what tells it apart.
func (r *Resolver) look(pid int, old entry) entry {
	if old.settled {
		if p, err := readIdentity(r.proc, pid); err == nil && p.start == old.start && p.comm == old.subject.Comm {
			return old
		}
	}
	p, err := read(r.proc, pid)
	if err != nil {
		if old.subject != nil {
			return old
		}
		return entry{subject: &profile.Subject{PID: pid}}
	}
	s := profile.Subject{PID: pid, Comm: p.comm, ContainerID: p.containerID, Rank: p.rank}
	if old.subject != nil && old.start == p.start && *old.subject == s {
		old.settled = true
		return old
	}
	return entry{subject: &s, start: p.start}
}
