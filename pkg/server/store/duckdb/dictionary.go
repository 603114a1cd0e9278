// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// dictionary keeps stacks between questions, so that a warm one reads samples
// only. It only grows; once too large it is replaced by an empty one. An answer is
// made from one dictionary, so equal places in it share a Location.
type dictionary struct {
	mu        sync.RWMutex
	stacks    map[uint64]profile.Stack
	locations map[uint64]*profile.Location
	mappings  map[profile.Mapping]*profile.Mapping
	frames    int // of all stacks
}

func newDictionary() *dictionary {
	return &dictionary{
		stacks:    make(map[uint64]profile.Stack),
		locations: make(map[uint64]*profile.Location),
		mappings:  make(map[profile.Mapping]*profile.Mapping),
	}
}

// current is the dictionary to answer from.
func (s *Store) current() *dictionary {
	d := s.dict.Load()
	d.mu.RLock()
	large := d.frames > s.cfg.DictionaryKeep
	d.mu.RUnlock()
	if large {
		s.dict.CompareAndSwap(d, newDictionary())
		d = s.dict.Load()
	}
	return d
}

// name turns sums by identifier into weights by stack, greatest first.
func (s *Store) name(ctx context.Context, l lease, sums map[uint64]int64) ([]store.Weight, error) {
	d := s.current()
	if err := s.fill(ctx, l, d, d.unknown(sums)); err != nil {
		return nil, err
	}
	type ranked struct {
		id    uint64
		value int64
	}
	order := make([]ranked, 0, len(sums))
	for id, value := range sums {
		order = append(order, ranked{id, value})
	}
	slices.SortFunc(order, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.id, b.id)) })

	d.mu.RLock()
	defer d.mu.RUnlock()
	out := make([]store.Weight, len(order))
	for i, r := range order {
		stack, ok := d.stacks[r.id]
		if !ok {
			return nil, fmt.Errorf("stack %016x is in no dictionary: the data directory was changed from outside", r.id)
		}
		out[i] = store.Weight{Stack: stack, Value: r.value}
	}
	return out, nil
}

// unknown lists the stacks that d does not have.
func (d *dictionary) unknown(sums map[uint64]int64) map[uint64]struct{} {
	d.mu.RLock()
	defer d.mu.RUnlock()
	missing := make(map[uint64]struct{})
	for id := range sums {
		if _, ok := d.stacks[id]; !ok {
			missing[id] = struct{}{}
		}
	}
	return missing
}

// fill reads stacks, and the locations they need, partition by partition until
// none is missing. A partition holds every location of its stacks.
func (s *Store) fill(ctx context.Context, l lease, d *dictionary, missing map[uint64]struct{}) error {
	for some := range slices.Chunk(l, unionOf) {
		if len(missing) == 0 {
			return nil
		}
		paths, err := s.readStacks(ctx, some, keys(missing))
		if err != nil {
			return err
		}
		locations, err := s.readLocations(ctx, some, d, paths)
		if err != nil {
			return err
		}
		d.add(paths, locations)
		for id := range paths {
			delete(missing, id)
		}
	}
	return nil
}

func keys(m map[uint64]struct{}) []uint64 {
	out := make([]uint64, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

func (s *Store) readStacks(ctx context.Context, some []*partition, ids []uint64) (map[uint64][]uint64, error) {
	paths := make(map[uint64][]uint64, len(ids))
	err := s.askSome(ctx, some, question{
		each: func(p *partition) clause {
			return clause{fmt.Sprintf("SELECT stack_id, frames FROM %s.stacks WHERE stack_id IN (SELECT unnest(?::UBIGINT[]))", p.catalog), []any{ids}}
		},
		outer: "SELECT stack_id, any_value(frames) FROM (%s) GROUP BY stack_id",
		row: func(scan func(...any) error) error {
			var (
				id   uint64
				list any
			)
			if err := scan(&id, &list); err != nil {
				return err
			}
			elements, ok := list.([]any)
			if !ok && list != nil {
				return fmt.Errorf("stack %016x: frames are %T", id, list)
			}
			path := make([]uint64, len(elements))
			for i, e := range elements {
				if path[i], ok = e.(uint64); !ok {
					return fmt.Errorf("stack %016x: frame %d is %T", id, i, e)
				}
			}
			paths[id] = path
			return nil
		},
	})
	return paths, err
}

// readLocations reads the locations on paths that d does not have.
func (s *Store) readLocations(ctx context.Context, some []*partition, d *dictionary, paths map[uint64][]uint64) (map[uint64]*profile.Location, error) {
	found := make(map[uint64]*profile.Location)
	ids := d.unknownLocations(paths)
	if len(ids) == 0 {
		return found, nil
	}
	err := s.askSome(ctx, some, question{
		each: func(p *partition) clause {
			return clause{fmt.Sprintf("SELECT * FROM %s.frames WHERE frame_id IN (SELECT unnest(?::UBIGINT[]))", p.catalog), []any{ids}}
		},
		// The same line may be written twice; a line is told by its place in the location.
		outer: `SELECT frame_id, inline, any_value(function), any_value(file), any_value(line), any_value(mapping), any_value(build_id),
			any_value(address), any_value(realm) FROM (%s) GROUP BY frame_id, inline ORDER BY frame_id, inline`,
		row: func(scan func(...any) error) error { return d.scanLine(scan, found) },
	})
	return found, err
}

func (d *dictionary) unknownLocations(paths map[uint64][]uint64) []uint64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	missing := make(map[uint64]struct{})
	for _, path := range paths {
		for _, id := range path {
			if _, ok := d.locations[id]; !ok {
				missing[id] = struct{}{}
			}
		}
	}
	return keys(missing)
}

// scanLine reads one row of frames. The rows of a location come in the order of its lines.
func (d *dictionary) scanLine(scan func(...any) error, found map[uint64]*profile.Location) error {
	var (
		id, address                    uint64
		inline                         uint32
		function, file, mapping, build sql.NullString
		line                           int64
		realm                          string
	)
	if err := scan(&id, &inline, &function, &file, &line, &mapping, &build, &address, &realm); err != nil {
		return err
	}
	l, ok := found[id]
	if !ok {
		r, err := profile.ParseRealm(realm)
		if err != nil {
			return fmt.Errorf("frame %016x: %w", id, err)
		}
		l = &profile.Location{Realm: r, Offset: address}
		if mapping.Valid {
			l.Mapping = d.mapping(profile.Mapping{Path: mapping.String, BuildID: build.String})
		}
		found[id] = l
	}
	if function.Valid {
		l.Lines = append(l.Lines, profile.Line{Function: function.String, File: file.String, Number: int(line)})
	}
	return nil
}

// mapping interns.
func (d *dictionary) mapping(m profile.Mapping) *profile.Mapping {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.mappings[m]; ok {
		return known
	}
	d.mappings[m] = &m
	return &m
}

// add puts stacks in, with locations that another question may have added meanwhile.
func (d *dictionary) add(paths map[uint64][]uint64, locations map[uint64]*profile.Location) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, l := range locations {
		if _, ok := d.locations[id]; !ok {
			d.locations[id] = l
		}
	}
	for id, path := range paths {
		if _, ok := d.stacks[id]; ok {
			continue
		}
		stack := make(profile.Stack, len(path))
		for i, frame := range path {
			l, ok := d.locations[frame]
			if !ok {
				// The partition is short of a row; the place is not guessed.
				l = &profile.Location{Realm: profile.RealmSynthetic, Offset: frame}
			}
			stack[i] = profile.Frame{Realm: l.Realm, Address: l.Offset, Location: l}
		}
		d.stacks[id] = stack
		d.frames += len(stack)
	}
}
