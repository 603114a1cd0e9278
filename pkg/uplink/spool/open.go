// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"cmp"
	"fmt"
	"slices"

	"diagon.dev/diagon/pkg/collector"
)

// Open opens the spool in dir, which it makes and locks, for the batches of
// bootID; batches of other boots found there keep theirs. It drops what exceeds
// the bounds. Losses are told to lost in samples, under the place "spool"; lost
// must not call back. The error wraps ErrLocked when another process has the folder.
func Open(dir string, bootID string, cfg Config, lost collector.Lost) (*Spool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	d, err := openDisk(dir)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	s, err := open(d, bootID, cfg, lost)
	if err != nil {
		d.close()
		return nil, err
	}
	return s, nil
}

// OpenMemory opens a spool that is lost with the process, for a host where no
// folder may be written.
func OpenMemory(bootID string, cfg Config, lost collector.Lost) (*Spool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return open(newMemory(), bootID, cfg, lost)
}

func open(f folder, bootID string, cfg Config, lost collector.Lost) (*Spool, error) {
	if !validBootID(bootID) {
		return nil, fmt.Errorf("spool: boot id %q: want 1 to 64 letters, digits and dashes", bootID)
	}
	s := &Spool{cfg: cfg, bootID: bootID, lost: lost, folder: f, ready: make(chan struct{}, 1)}
	_, s.stats.InMemory = f.(*memory)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return s, nil
}

// load indexes the segments that an earlier process left.
func (s *Spool) load() error {
	names, err := s.folder.list()
	if err != nil {
		return fmt.Errorf("list segments: %w", err)
	}
	for _, name := range names {
		if seg, ok := parseName(name); ok {
			s.segments = append(s.segments, seg)
		}
	}
	slices.SortFunc(s.segments, func(a, b *segment) int { return cmp.Compare(a.ordinal, b.ordinal) })

	acked := make(map[string]uint64)
	known, whole := false, true
	for _, seg := range s.segments {
		found, err := seg.load(s.folder, acked)
		if err != nil {
			return fmt.Errorf("%s: %w", s.folder.path(seg.name), err)
		}
		s.stats.TornBytes += found.torn
		s.stats.Damaged += uint64(found.records)
		if found.records > 0 {
			s.lost(lostPlace, uint64(found.records)) // what they held is unknown; one each is the least
		}

		s.ordinal = seg.ordinal
		s.stats.DiskBytes += seg.size
		if seg.bootID == s.bootID {
			s.last = max(s.last, seg.last)
			known, whole = true, whole && found.records == 0
		}
	}
	for _, seg := range s.segments {
		seg.position = s.end
		for i := range seg.batches {
			if seg.batches[i].sequence <= acked[seg.bootID] {
				seg.head = i + 1
				continue
			}
			s.hold(seg.batches[i])
		}
		s.end += Position(len(seg.batches))
	}
	if (!known || !whole) && s.cfg.Floor != nil {
		s.last = max(s.last, s.cfg.Floor())
	}
	s.trim()
	s.makeRoom(0)
	if s.stats.Batches > 0 {
		s.wake()
	}
	return nil
}
