// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrConflict means that somebody else has written the record meanwhile.
	ErrConflict = errors.New("record was changed by someone else")
	// ErrNotFound means that there is no such record.
	ErrNotFound = errors.New("no such record")
)

// modifyTries bounds how often Modify starts again after a conflict.
const modifyTries = 64

// A Table is a JetStream bucket of JSON records and a mirror of it in memory:
// reads cost nothing, writes go to all servers and name the revision they
// are based on. A write is in the own mirror when it returns.
//
// Records handed out are shared: treat them as read-only.
type Table[T any] struct {
	bus   *Bus
	kv    jetstream.KeyValue
	watch jetstream.KeyWatcher
	done  chan struct{}

	mu     sync.RWMutex
	rows   map[string]row[T]
	seen   uint64        // revision up to which the mirror is current
	change chan struct{} // closed and made anew when seen grows
}

type row[T any] struct {
	raw   []byte
	value T
	rev   uint64
}

// OpenTable opens the bucket of that name, makes it when it is missing, and
// returns when the mirror is whole. Bus.Close closes it.
func OpenTable[T any](ctx context.Context, b *Bus, bucket string, maxBytes int64) (*Table[T], error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	kv, err := b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, History: 1, MaxBytes: min(maxBytes, memoryBytes/4), Replicas: b.replicas, Storage: b.storage,
	})
	if err != nil {
		return nil, fmt.Errorf("bus: table %s: %w", bucket, err)
	}
	// The watcher must outlive ctx: it stops when the table does.
	watch, err := kv.WatchAll(context.Background())
	if err != nil {
		return nil, fmt.Errorf("bus: table %s: watch: %w", bucket, err)
	}
	t := &Table[T]{
		bus: b, kv: kv, watch: watch, done: make(chan struct{}),
		rows: map[string]row[T]{}, change: make(chan struct{}),
	}
	whole := make(chan struct{})
	go t.follow(whole)
	b.mu.Lock()
	b.tables = append(b.tables, t)
	b.mu.Unlock()

	select {
	case <-whole:
		return t, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("bus: table %s: read: %w", bucket, ctx.Err())
	}
}

// follow keeps the mirror current until the watcher is stopped.
func (t *Table[T]) follow(whole chan<- struct{}) {
	defer close(t.done)
	for e := range t.watch.Updates() {
		if e == nil { // marks the end of what was there at the start
			close(whole)
			continue
		}
		t.apply(e)
	}
}

func (t *Table[T]) apply(e jetstream.KeyValueEntry) {
	r := row[T]{raw: e.Value(), rev: e.Revision()}
	gone := e.Operation() != jetstream.KeyValuePut
	if !gone {
		if err := json.Unmarshal(r.raw, &r.value); err != nil {
			t.bus.log.Warn("record is unreadable and left out", "bucket", e.Bucket(), "key", e.Key(), "err", err)
			gone = true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if gone {
		delete(t.rows, e.Key())
	} else {
		t.rows[e.Key()] = r
	}
	t.seen = max(t.seen, r.rev)
	close(t.change)
	t.change = make(chan struct{})
}

func (t *Table[T]) stop() {
	_ = t.watch.Stop()
	select {
	case <-t.done:
	case <-time.After(stopTimeout):
	}
}

// Get returns the record and its revision.
func (t *Table[T]) Get(key string) (value T, rev uint64, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.rows[key]
	return r.value, r.rev, ok
}

// All goes over the records as they were when it was called, in no order.
func (t *Table[T]) All() iter.Seq2[string, T] {
	t.mu.RLock()
	rows := maps.Clone(t.rows)
	t.mu.RUnlock()
	return func(yield func(string, T) bool) {
		for k, r := range rows {
			if !yield(k, r.value) {
				return
			}
		}
	}
}

// Len is the number of records.
func (t *Table[T]) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.rows)
}

// Put writes the record whatever was there.
func (t *Table[T]) Put(ctx context.Context, key string, value T) (rev uint64, err error) {
	return t.write(ctx, key, value, func(raw []byte) (uint64, error) { return t.kv.Put(ctx, key, raw) })
}

// Create writes a record that was not there; otherwise ErrConflict.
func (t *Table[T]) Create(ctx context.Context, key string, value T) (rev uint64, err error) {
	return t.write(ctx, key, value, func(raw []byte) (uint64, error) { return t.kv.Create(ctx, key, raw) })
}

// Update writes the record if it still has the revision base; otherwise ErrConflict.
func (t *Table[T]) Update(ctx context.Context, key string, value T, base uint64) (rev uint64, err error) {
	return t.write(ctx, key, value, func(raw []byte) (uint64, error) { return t.kv.Update(ctx, key, raw, base) })
}

// Modify reads the record, lets change edit a copy, and writes it back unless
// change returns false; after a conflict it does so again. ErrNotFound when there is none.
func (t *Table[T]) Modify(ctx context.Context, key string, change func(*T) bool) error {
	for range modifyTries {
		t.mu.RLock()
		r, ok := t.rows[key]
		t.mu.RUnlock()
		if !ok {
			return fmt.Errorf("%s: %w", key, ErrNotFound)
		}
		var own T // of its own bytes: the mirror's value is shared
		if err := json.Unmarshal(r.raw, &own); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if !change(&own) {
			return nil
		}
		_, err := t.Update(ctx, key, own, r.rev)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		// The mirror is behind the bucket: wait until it has moved past the revision read.
		if err := t.waitPast(ctx, r.rev, key); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: still changing after %d tries: %w", key, modifyTries, ErrConflict)
}

// Delete removes the record; removing what is not there is no error.
func (t *Table[T]) Delete(ctx context.Context, key string) error {
	if err := t.kv.Purge(ctx, key); err != nil {
		return fmt.Errorf("%s: delete: %w", key, err)
	}
	return nil
}

func (t *Table[T]) write(ctx context.Context, key string, value T, put func([]byte) (uint64, error)) (uint64, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	rev, err := put(raw)
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return 0, fmt.Errorf("%s: %w", key, ErrConflict)
	}
	t.bus.failed.Store(err != nil && !errors.Is(err, context.Canceled))
	if err != nil {
		return 0, fmt.Errorf("%s: write: %w", key, err)
	}
	t.waitSeen(ctx, rev)
	return rev, nil
}

// waitSeen waits until the mirror holds revision rev. The write has happened
// either way, so running out of time is no error.
func (t *Table[T]) waitSeen(ctx context.Context, rev uint64) {
	for {
		t.mu.RLock()
		seen, change := t.seen, t.change
		t.mu.RUnlock()
		if seen >= rev {
			return
		}
		select {
		case <-change:
		case <-t.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// waitPast waits until the mirror's revision of key is no longer rev.
func (t *Table[T]) waitPast(ctx context.Context, rev uint64, key string) error {
	for {
		t.mu.RLock()
		now, change := t.rows[key].rev, t.change
		t.mu.RUnlock()
		if now != rev {
			return nil
		}
		select {
		case <-change:
		case <-t.done:
			return fmt.Errorf("%s: the bus is closed", key)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", key, ctx.Err())
		}
	}
}
