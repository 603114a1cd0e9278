// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"sync/atomic"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// quality counts how complete the stacks are that pass it.
type quality struct {
	samples        [profile.NumTypes]atomic.Uint64 // that carry a value of the type
	named, unnamed atomic.Uint64                   // frames
	rooted, cutOff atomic.Uint64                   // stacks
}

// Into counts each sample and hands it to next.
func (q *quality) Into(next collector.Sink) collector.Sink {
	return collector.SinkFunc(func(s profile.Sample) {
		for t, v := range s.Values {
			if v != 0 {
				q.samples[t].Add(1)
			}
		}
		named := uint64(0)
		for i := range s.Stack {
			if s.Stack[i].Location.Named() {
				named++
			}
		}
		q.named.Add(named)
		q.unnamed.Add(uint64(len(s.Stack)) - named)
		if reachesRoot(s.Stack) {
			q.rooted.Add(1)
		} else {
			q.cutOff.Add(1)
		}
		next.Put(s)
	})
}

// reachesRoot reports whether the outermost frame is where a thread begins.
func reachesRoot(stack profile.Stack) bool {
	if len(stack) == 0 {
		return false
	}
	outermost := stack[len(stack)-1].Location
	if !outermost.Named() {
		return false
	}
	return isRoot(outermost.Lines[len(outermost.Lines)-1].Function)
}

// isRoot knows where threads begin: the C library's start of a program and of a thread,
// Go's of a goroutine, of a thread and of the scheduler's stack, and the kernel's of its own threads.
func isRoot(function string) bool {
	switch function {
	case "_start", "start_thread", "thread_start", "runtime.goexit", "runtime.mstart", "runtime.mcall", "runtime.rt0_go":
		return true
	}
	for _, prefix := range []string{"__libc_start_", "clone", "__clone", "ret_from_fork", "_rt0_", "runtime.goexit", "runtime.mstart"} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}
