// SPDX-License-Identifier: Apache-2.0

package symbol

import "time"

// maxTasks bounds the pieces of work under way. More than one is only ever under
// way when a file system does not answer.
const maxTasks = 8

// A tasks runs what may block: a file on a network file system whose server is
// gone blocks for ever and cannot be interrupted. The work then keeps its
// goroutine, of which there are at most maxTasks, and nobody else waits.
type tasks struct{ slots chan struct{} }

func newTasks() *tasks { return &tasks{make(chan struct{}, maxTasks)} }

// A task is a piece of work under way.
type task struct{ done chan struct{} }

// pending reports whether the work is still under way. A nil task is not.
func (t *task) pending() bool {
	if t == nil {
		return false
	}
	select {
	case <-t.done:
		return false
	default:
		return true
	}
}

// start runs work, or returns nil when too much is under way.
func (t *tasks) start(work func()) *task {
	select {
	case t.slots <- struct{}{}:
	default:
		return nil
	}
	started := &task{done: make(chan struct{})}
	go func() {
		defer func() { <-t.slots }()
		defer close(started.done)
		work()
	}()
	return started
}

// wait returns whether the task ended before the deadline.
func (t *task) wait(left time.Duration) bool {
	if t == nil {
		return false
	}
	if left <= 0 {
		return !t.pending()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-t.done:
		return true
	case <-timer.C:
		return false
	}
}

// close waits up to left for the work under way. When it has ended nothing is
// begun any more.
func (t *tasks) close(left time.Duration) bool {
	timer := time.NewTimer(left)
	defer timer.Stop()
	for taken := range maxTasks {
		select {
		case t.slots <- struct{}{}:
		case <-timer.C:
			for range taken {
				<-t.slots
			}
			return false
		}
	}
	return true
}
