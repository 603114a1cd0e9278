// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// A segment is one file of records of one boot.
type segment struct {
	name    string
	ordinal uint64
	bootID  string

	size     int64
	last     uint64   // highest sequence known to have been given out when it was written
	position Position // of batches[0]
	batches  []entry
	head     int  // of batches: the oldest that is still held
	file     file // nil unless open
}

// An entry is a batch in the index.
type entry struct {
	sequence uint64
	samples  uint64
	unixNano int64
	offset   int64
	length   uint32
	dead     bool // could not be read, and was counted
}

var (
	segmentName = regexp.MustCompile(`^([0-9a-f]{16})\.([0-9A-Za-z-]{1,64})\.spool$`)
	bootIDs     = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
)

// validBootID keeps boot ids to what a file name can hold.
func validBootID(id string) bool { return bootIDs.MatchString(id) }

func formatName(ordinal uint64, bootID string) string {
	return fmt.Sprintf("%016x.%s.spool", ordinal, bootID)
}

func parseName(name string) (*segment, bool) {
	m := segmentName.FindStringSubmatch(name)
	if m == nil {
		return nil, false
	}
	ordinal, err := strconv.ParseUint(m[1], 16, 64)
	if err != nil {
		return nil, false
	}
	return &segment{name: name, ordinal: ordinal, bootID: m[2]}, true
}

// load indexes the segment's records and notes in acked, by boot, how far they
// were acknowledged. A batch that does not follow the one before it is damage.
func (seg *segment) load(f folder, acked map[string]uint64) (damage, error) {
	file, err := f.open(seg.name)
	if err != nil {
		return damage{}, err
	}
	defer file.Close()
	if seg.size, err = file.size(); err != nil {
		return damage{}, err
	}

	stray := 0
	found, err := scan(file, seg.size, func(h header, offset int64) {
		switch h.kind {
		case kindMark:
			seg.last = max(seg.last, h.sequence)
		case kindBatch:
			if h.sequence <= seg.last {
				stray++
				return
			}
			seg.last = h.sequence
			seg.batches = append(seg.batches, entry{
				sequence: h.sequence, samples: h.samples, unixNano: h.unixNano, offset: offset, length: h.length,
			})
		case kindAck:
			boot := make([]byte, min(h.length, 64))
			if _, err := file.ReadAt(boot, offset+headerBytes); err == nil {
				acked[string(boot)] = max(acked[string(boot)], h.sequence)
			}
		default:
			stray++ // of a later version
		}
	})
	if found.torn > 0 {
		seg.last++ // the number of what was cut short, should it have been seen by anyone
	}
	found.records += stray
	return found, err
}

// done reports that nothing in the segment is held any more.
func (seg *segment) done() bool {
	for seg.head < len(seg.batches) && seg.batches[seg.head].dead {
		seg.head++
	}
	return seg.head == len(seg.batches)
}

// pop takes the oldest batch that is held; the segment must not be done.
func (seg *segment) pop() entry {
	e := seg.batches[seg.head]
	seg.head++
	return e
}

// ensureActive makes sure there is a segment with room for n more bytes.
func (s *Spool) ensureActive(n int64) error {
	if a := s.active; a != nil && (a.size+n <= s.cfg.segmentBytes() || len(a.batches) == 0) {
		return nil
	}
	return s.roll()
}

// roll begins a new segment.
func (s *Spool) roll() error {
	seg := &segment{
		name:     formatName(s.ordinal+1, s.bootID),
		ordinal:  s.ordinal + 1,
		bootID:   s.bootID,
		last:     s.last,
		position: s.end,
	}
	f, err := s.folder.create(seg.name)
	if err != nil {
		return err
	}
	mark := appendRecord(nil, header{kind: kindMark, sequence: s.last, unixNano: s.cfg.Now().UnixNano()}, nil)
	_, err = f.WriteAt(mark, 0)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return errors.Join(err, s.folder.remove(seg.name))
	}

	s.retire()
	seg.file, seg.size = f, int64(len(mark))
	s.active, s.ordinal = seg, seg.ordinal
	s.segments = append(s.segments, seg)
	s.stats.DiskBytes += seg.size
	s.trim()
	return nil
}

// retire ends writing to the active segment.
func (s *Spool) retire() {
	if s.active == nil {
		return
	}
	s.active.file.Close()
	s.active.file, s.active = nil, nil
}

// makeRoom drops the oldest batches until n more bytes and one more batch are
// within the bounds.
func (s *Spool) makeRoom(n int64) {
	if s.cfg.Age > 0 {
		oldest := s.cfg.Now().Add(-s.cfg.Age).UnixNano()
		s.dropWhile(func(e entry) bool { return e.unixNano < oldest })
	}
	s.dropWhile(func(entry) bool { return n > 0 && s.stats.Batches >= s.cfg.Batches || s.stats.Batches > s.cfg.Batches })

	for s.stats.DiskBytes+n > s.cfg.Bytes && len(s.segments) > 0 {
		// The only segment is also the one that remembers the numbers.
		if len(s.segments) == 1 && s.roll() != nil {
			return
		}
		s.drop(s.segments[0])
		before := len(s.segments)
		s.trim()
		if len(s.segments) == before {
			return
		}
	}
}

// dropWhile drops the oldest batch while it is one to drop.
func (s *Spool) dropWhile(old func(entry) bool) {
	for _, seg := range s.segments {
		for !seg.done() {
			if !old(seg.batches[seg.head]) {
				s.trim()
				return
			}
			s.dropEntry(seg.pop())
		}
	}
	s.trim()
}

// drop forgets a segment's batches and counts them.
func (s *Spool) drop(seg *segment) {
	for !seg.done() {
		s.dropEntry(seg.pop())
	}
}

func (s *Spool) dropEntry(e entry) {
	s.release(e)
	s.stats.DroppedBatches++
	s.stats.DroppedSamples += e.samples
	s.lost(lostPlace, max(e.samples, 1)) // a batch of readings only is a loss too
}

// trim removes the segments at the front that hold nothing any more, but never
// the newest one of this boot: it remembers the numbers.
func (s *Spool) trim() {
	for len(s.segments) > 0 {
		seg := s.segments[0]
		if !seg.done() || seg == s.newest() {
			return
		}
		if seg == s.reading {
			s.closeReading()
		}
		if err := s.folder.remove(seg.name); err != nil {
			return // it holds nothing; the next trim tries again
		}
		s.stats.DiskBytes -= seg.size
		s.segments = s.segments[1:]
	}
}

// newest is the newest segment of this boot, or nil.
func (s *Spool) newest() *segment {
	for i := len(s.segments) - 1; i >= 0; i-- {
		if s.segments[i].bootID == s.bootID {
			return s.segments[i]
		}
	}
	return nil
}
