// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"diagon.dev/diagon/pkg/server/store"
)

const (
	queued       = 64      // requests that wait for the writer; more wait in Append
	groupRows    = 200_000 // rows that one commit takes, at most one request more
	walBytes     = 16 << 20
	writeTimeout = time.Minute
)

// A request is one call of Append, on its way to the writer.
type request struct {
	batches []*rows
	hour    time.Time // that the newest batch begins in
	rows    int
	done    chan error // of one place, so that the writer never waits
}

// Append makes the batches durable. All batches of a call go into one
// partition, in one transaction: that is what makes them all or none.
//
// When ctx is done before an answer, the batches may be stored or not; sending
// them again is harmless.
func (s *Store) Append(ctx context.Context, batches ...store.Batch) error {
	if len(batches) == 0 {
		return nil
	}
	r := &request{done: make(chan error, 1)}
	newest := batches[0].Start
	for _, b := range batches {
		rows, err := tabulate(b)
		if err != nil {
			return fmt.Errorf("duckdb: append: %w", err)
		}
		r.batches = append(r.batches, rows)
		r.rows += len(rows.samples)
		if b.Start.After(newest) {
			newest = b.Start
		}
	}
	// A clock that is ahead would make partitions that no retention reaches.
	if now := s.cfg.Now(); newest.After(now) {
		newest = now
	}
	r.hour = newest.UTC().Truncate(time.Hour)

	select {
	case s.queue <- r:
	case <-s.closing:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("duckdb: append: wait for the writer: %w", ctx.Err())
	}
	select {
	case err := <-r.done:
		return err
	case <-s.stopped:
		// The writer answers before it stops, unless the request came too late for it.
		select {
		case err := <-r.done:
			return err
		default:
			return errClosed
		}
	case <-ctx.Done():
		return fmt.Errorf("duckdb: append: wait for the disk: %w", ctx.Err())
	}
}

// write is the store's one writer. What waits is committed together.
func (s *Store) write() {
	defer close(s.stopped)
	w := &batchWriter{Store: s, known: make(map[*partition]*known)}
	for {
		var group []*request
		select {
		case r := <-s.queue:
			group = append(group, r)
		case <-s.closing:
			return
		}
		for n := group[0].rows; n < groupRows; {
			r := s.waiting()
			if r == nil {
				break
			}
			group = append(group, r)
			n += r.rows
		}
		w.commit(group)
	}
}

// waiting takes a request if there is one.
func (s *Store) waiting() *request {
	select {
	case r := <-s.queue:
		return r
	default:
		return nil
	}
}

// batchWriter is what the writing goroutine alone knows.
type batchWriter struct {
	*Store
	known map[*partition]*known
}

// commit writes requests, each hour's into one partition and one transaction.
func (w *batchWriter) commit(group []*request) {
	byHour := make(map[time.Time][]*request)
	for _, r := range group {
		byHour[r.hour] = append(byHour[r.hour], r)
	}
	for hour, requests := range byHour {
		err := w.commitHour(hour, requests)
		// One request that cannot be stored must not fail its neighbours.
		if err != nil && len(requests) > 1 && !errors.Is(err, store.ErrFull) {
			for _, r := range requests {
				r.done <- w.commitHour(hour, []*request{r})
			}
			continue
		}
		for _, r := range requests {
			r.done <- err
		}
	}
}

func (w *batchWriter) commitHour(hour time.Time, requests []*request) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()

	batches := w.fresh(requests)
	if len(batches) == 0 {
		return nil
	}
	if err := w.roomLeft(); err != nil {
		return fmt.Errorf("duckdb: append: %w", err)
	}
	p, err := w.partitionFor(ctx, hour)
	if err != nil {
		return w.failed(err)
	}
	defer p.use.Release(1)

	if err := w.insert(ctx, p, batches); err != nil {
		return w.failed(w.settle(ctx, p, batches, err))
	}
	p.mu.Lock()
	for _, b := range batches {
		p.note(b.stream, b.sequence, b.capture, b.first, b.last)
	}
	p.mu.Unlock()
	w.checkpoint(ctx, p)
	w.detachIdle(ctx)
	return nil
}

func (w *batchWriter) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return fmt.Errorf("duckdb: append: %w", w.full(err))
	}
	return fmt.Errorf("duckdb: append: %w", err)
}

// fresh lists the requests' batches without those that are held, and each once.
func (w *batchWriter) fresh(requests []*request) []*rows {
	type id struct {
		stream
		sequence uint64
	}
	seen := make(map[id]bool)
	var out []*rows
	for _, r := range requests {
		for _, b := range r.batches {
			key := id{b.stream, b.sequence}
			if seen[key] || w.holds(b.stream, b.sequence) {
				continue
			}
			seen[key] = true
			out = append(out, b)
		}
	}
	return out
}

// holds reports whether any partition has the batch.
func (s *Store) holds(st stream, sequence uint64) bool {
	for _, p := range s.snapshot() {
		p.mu.Lock()
		has := p.held.has(st, sequence)
		p.mu.Unlock()
		if has {
			return true
		}
	}
	return false
}

// DurableSequence is the highest sequence held of a node's boot; 0 for none.
func (s *Store) DurableSequence(ctx context.Context, node, bootID string) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("duckdb: durable sequence: %w", err)
	}
	st := stream{clean(node), clean(bootID)}
	var highest uint64
	for _, p := range s.snapshot() {
		p.mu.Lock()
		highest = max(highest, p.held.highest(st))
		p.mu.Unlock()
	}
	return highest, nil
}

// snapshot is the list of partitions as it is now.
func (s *Store) snapshot() []*partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.partitions
}

// partitionFor finds or makes the partition to write an hour's batches into. The caller shares it.
func (w *batchWriter) partitionFor(ctx context.Context, hour time.Time) (*partition, error) {
	var last *partition
	for _, p := range w.snapshot() {
		if p.hour.Equal(hour) {
			last = p
		}
	}
	if last != nil && last.bytes() < w.cfg.PartitionBytes {
		err := last.share(ctx, w.Store)
		if err == nil {
			return last, nil
		}
		if isDamage(err) {
			err = w.setAsideShared(ctx, last, err)
		}
		if err != nil && !errors.Is(err, errGone) {
			return nil, err
		}
	}
	p, err := w.create(ctx, hour)
	if err != nil {
		return nil, err
	}
	return p, p.share(ctx, w.Store)
}

// settle finds out what became of a transaction that failed: DuckDB may have
// closed the file to further use, and a commit may have failed after its rows
// were durable. Attached anew, the partition says what it holds.
func (w *batchWriter) settle(ctx context.Context, p *partition, batches []*rows, why error) error {
	delete(w.known, p)
	p.use.Release(1)
	err := p.use.Acquire(ctx, everyone)
	if err != nil {
		return errors.Join(why, err, w.shareAgain(p))
	}
	err = errors.Join(p.detach(ctx, w.Store), p.attach(ctx, w.Store))
	if err == nil {
		err = w.readContents(ctx, p)
	}
	if isDamage(err) {
		err = errors.Join(err, w.setAside(ctx, p, err))
	}
	p.use.Release(everyone - 1)
	if err != nil {
		return errors.Join(why, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range batches {
		if !p.held.has(b.stream, b.sequence) {
			return why
		}
	}
	return nil
}

// shareAgain restores the share that the caller of settle gives back.
func (w *batchWriter) shareAgain(p *partition) error {
	return p.use.Acquire(context.Background(), 1)
}

// checkpoint moves the log into the file once it is large. Failing is no loss:
// the log is read again when the partition is attached.
func (w *batchWriter) checkpoint(ctx context.Context, p *partition) {
	info, err := os.Stat(p.path + walExt)
	if err != nil || info.Size() < walBytes {
		return
	}
	if _, err := w.db.ExecContext(ctx, "CHECKPOINT "+p.catalog); err != nil {
		w.log.Warn("log stays large", "partition", p.path, "bytes", info.Size(), "error", err)
		if err := w.settle(ctx, p, nil, nil); err != nil {
			w.log.Error("partition cannot be opened again", "partition", p.path, "error", err)
		}
	}
}
