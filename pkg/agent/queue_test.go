// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"
	"testing"
)

func TestAQueueHandsOverAllThatItAccepted(t *testing.T) {
	q := newQueue[int](100)
	const putters, each = 4, 10_000
	var accepted, refused int64
	var mu sync.Mutex
	var putting sync.WaitGroup
	for range putters {
		putting.Go(func() {
			yes, no := int64(0), int64(0)
			for range each {
				if q.put(1) {
					yes++
				} else {
					no++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			accepted, refused = accepted+yes, refused+no
		})
	}
	done := make(chan struct{})
	go func() { putting.Wait(); close(done) }()

	var taken int64
	for open := true; open; {
		select {
		case <-q.waiting:
		case <-done:
			open = false
		}
		taken += int64(len(q.take()))
	}
	if taken != accepted || accepted+refused != putters*each {
		t.Errorf("accepted %d, took %d, refused %d of %d", accepted, taken, refused, putters*each)
	}
}

func TestAQueueKeepsOrderAndItsBound(t *testing.T) {
	q := newQueue[int](3)
	for round := range 3 {
		for i := range 5 {
			if got, want := q.put(10*round+i), i < 3; got != want {
				t.Errorf("round %d: put %d = %v", round, i, got)
			}
		}
		<-q.waiting
		for i, v := range q.take() {
			if v != 10*round+i {
				t.Errorf("round %d: took %d at %d", round, v, i)
			}
		}
	}
}
