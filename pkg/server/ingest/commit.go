// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"diagon.dev/diagon/pkg/server/store"
)

// Bounds of one commit. What waits while the store writes is the next group, so that
// under load a commit's fixed cost is shared, and without load nobody waits.
const (
	groupBatches = 256
	commitQueue  = 1024
	fullFor      = 10 * time.Second // after which a full store is tried again
)

// A pending batch is on its way into the store.
type pending struct {
	sequence uint64
	samples  uint64
	batch    store.Batch
	refused  string // why the batch will never be stored; then there is nothing to store
	release  func() // gives back what the batch holds of the bounds; may be nil

	err  error         // set before done is closed
	done chan struct{} // closed when the batch is durable, or will not be
}

func (p *pending) settle(err error) {
	p.err = err
	p.batch = store.Batch{}
	if p.release != nil {
		p.release()
	}
	close(p.done)
}

// A committer writes what all streams bring, in groups. One goroutine writes.
type committer struct {
	st      store.Store
	timeout time.Duration
	metrics *metrics
	log     *slog.Logger
	now     func() time.Time

	queue     chan *pending
	closing   chan struct{}
	closeOnce sync.Once

	mu        sync.Mutex
	held      error // why nothing is taken, whatever the store would say
	fullErr   error // the store's word at its last append
	fullUntil time.Time
}

func newCommitter(st store.Store, timeout time.Duration, m *metrics, log *slog.Logger, now func() time.Time) *committer {
	return &committer{
		st: st, timeout: timeout, metrics: m, log: log, now: now,
		queue: make(chan *pending, commitQueue), closing: make(chan struct{}),
	}
}

var errStopping = errors.New("the server is stopping")

// put hands an item over; it is settled in any case.
func (c *committer) put(p *pending) {
	select {
	case c.queue <- p:
	case <-c.closing:
		p.settle(errStopping)
	}
}

// drop settles an item that was not put.
func (c *committer) drop(p *pending) { p.settle(errStopping) }

func (c *committer) close() { c.closeOnce.Do(func() { close(c.closing) }) }

// run writes until close.
func (c *committer) run() {
	for {
		select {
		case p := <-c.queue:
			c.commit(c.group(p))
		case <-c.closing:
			c.abandon()
			return
		}
	}
}

// group takes along what waits already.
func (c *committer) group(first *pending) []*pending {
	group := []*pending{first}
	for len(group) < groupBatches {
		select {
		case p := <-c.queue:
			group = append(group, p)
		default:
			return group
		}
	}
	return group
}

func (c *committer) abandon() {
	for {
		select {
		case p := <-c.queue:
			p.settle(errStopping)
		default:
			return
		}
	}
}

// commit writes a group in one step. When the store refuses the group for another reason than
// its disk, each batch is tried by itself, so that one cannot hold up the others.
func (c *committer) commit(group []*pending) {
	var batches []store.Batch
	for _, p := range group {
		if p.refused == "" {
			batches = append(batches, p.batch)
		}
	}
	err := c.append(batches)
	alone := err != nil && len(batches) > 1 && !errors.Is(err, store.ErrFull) && !errors.Is(err, context.DeadlineExceeded)
	for _, p := range group {
		switch {
		case p.refused != "":
			p.settle(nil)
		case alone:
			c.finish(p, c.append([]store.Batch{p.batch}))
		default:
			c.finish(p, err)
		}
	}
}

func (c *committer) finish(p *pending, err error) {
	result := "stored"
	if err != nil {
		result = "failed"
	} else {
		c.metrics.samples.Add(float64(p.samples))
	}
	c.metrics.batches.WithLabelValues(result).Inc()
	p.settle(err)
}

func (c *committer) append(batches []store.Batch) error {
	if len(batches) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	start := time.Now()
	err := c.st.Append(ctx, batches...)
	c.metrics.appendSeconds.Observe(time.Since(start).Seconds())
	c.metrics.groupSize.Observe(float64(len(batches)))
	c.note(err)
	if err != nil {
		c.log.Warn("store did not take batches", "batches", len(batches), "err", err)
	}
	return err
}

// note remembers a full store, so that agents are sent away before they send.
func (c *committer) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrFull):
		if c.fullErr == nil {
			c.log.Error("store is full: profiles are refused until there is room", "err", err)
		}
		c.fullErr, c.fullUntil = err, c.now().Add(fullFor)
	case err == nil && c.fullErr != nil:
		c.log.Info("store takes profiles again")
		c.fullErr = nil
	}
}

// hold makes the committer refuse for a reason from outside; nil lets it go on.
func (c *committer) hold(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = err
}

// full says why profiles are not stored at present; nil when they are.
func (c *committer) full() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.held != nil:
		return fmt.Errorf("profiles are not taken: %w", c.held)
	case c.fullErr != nil:
		return fmt.Errorf("profiles are not taken: %w", c.fullErr)
	}
	return nil
}

// refuses is full, except that a store which said so is tried again now and then: it may
// have room by now.
func (c *committer) refuses() error {
	err := c.full()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil && !c.now().Before(c.fullUntil) {
		return nil
	}
	return err
}
