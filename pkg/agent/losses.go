// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"slices"
	"sync"

	"diagon.dev/diagon/pkg/profile"
)

// Losses counts what was dropped on this node, by place. The places, in the order in
// which a sample passes them:
//
//	ring      the kernel's ring buffer was full
//	follow    a recorded process had more children than are followed
//	decode    a record of the kernel half was not understood
//	queue     the stages behind the collectors did not keep up
//	exited    the process had gone before its code could be named (the sample is kept, without names)
//	exec      the process became another program before its code could be named (kept, without names)
//	window    a recording met more different stacks than it holds
//	readings  more readings came in one window than it holds
//	encode    a window could not be written as pprof
//	spool     samples (one for a batch of readings only): the server was away for longer than the spool holds, or the disk was full
//	rejected  the server will never accept the batch
//
// Its methods may be called from several goroutines; the zero value is ready.
type Losses struct {
	mu     sync.Mutex
	counts map[string]uint64
}

// Lost counts n more at a place. It is a collector.Lost.
func (l *Losses) Lost(place string, n uint64) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = make(map[string]uint64)
	}
	l.counts[place] += n
}

// Total lists the losses since the start, by place.
func (l *Losses) Total() []profile.Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	return listLosses(l.counts)
}

// since lists what was lost since seen was made, and brings seen up to date.
func (l *Losses) since(seen map[string]uint64) []profile.Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := make(map[string]uint64)
	for place, n := range l.counts {
		if n > seen[place] {
			fresh[place] = n - seen[place]
			seen[place] = n
		}
	}
	return listLosses(fresh)
}

func listLosses(counts map[string]uint64) []profile.Loss {
	list := make([]profile.Loss, 0, len(counts))
	for place, n := range counts {
		list = append(list, profile.Loss{Place: place, Count: n})
	}
	slices.SortFunc(list, func(a, b profile.Loss) int { return cmp.Compare(a.Place, b.Place) })
	return list
}
