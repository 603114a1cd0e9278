// SPDX-License-Identifier: Apache-2.0

package agent

import "sync"

// A queue holds what comes from several goroutines until one takes it, all at once. A channel
// would wake the taker for each element; a drain of the ring puts hundreds in a row, and waking
// costs more than what is done with a sample.
type queue[T any] struct {
	waiting chan struct{} // holds one token while there is something to take
	bound   int

	mu    sync.Mutex
	items []T
	spare []T // what was taken last, to be filled again
}

func newQueue[T any](bound int) *queue[T] {
	return &queue[T]{waiting: make(chan struct{}, 1), bound: bound}
}

// put reports whether there was room. It never waits for the taker.
func (q *queue[T]) put(item T) bool {
	q.mu.Lock()
	if len(q.items) >= q.bound {
		q.mu.Unlock()
		return false
	}
	q.items = append(q.items, item)
	first := len(q.items) == 1
	q.mu.Unlock()
	if first {
		select {
		case q.waiting <- struct{}{}:
		default:
		}
	}
	return true
}

// take returns what waits, in order. The slice is the caller's until the next take.
func (q *queue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.items
	clear(q.spare)
	q.items, q.spare = q.spare[:0], taken
	return taken
}
