// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"diagon.dev/diagon/pkg/collector"
)

// ErrTooLarge means that a batch is larger than a quarter of the spool.
var ErrTooLarge = errors.New("batch is too large to spool")

// lostPlace is where the spool's losses are counted, in samples.
const lostPlace = "spool"

// A Batch is what Append was given, and its number.
type Batch struct {
	BootID   string
	Sequence uint64
	Samples  uint64
	Data     []byte
}

// A Position is a place in the queue, oldest first. It holds for as long as the
// spool is open.
type Position uint64

// Stats is what a spool holds and what went wrong with it since it was opened.
type Stats struct {
	Batches   int    // held, not acknowledged
	Samples   uint64 // in them
	Bytes     int64  // of their payloads
	DiskBytes int64  // of all segments
	InMemory  bool

	DroppedBatches uint64 // to keep within the bounds
	DroppedSamples uint64
	Damaged        uint64 // records that could not be read
	TornBytes      int64  // cut short by a crash before Append returned
}

// A Spool is a durable queue of batches. Its methods may be called from several
// goroutines; one at a time touches the disk.
type Spool struct {
	cfg    Config
	bootID string
	lost   collector.Lost
	folder folder
	ready  chan struct{} // holds one token after an Append; never closed

	mu       sync.Mutex
	segments []*segment // by age; those of an older boot come first
	active   *segment   // the last of segments while it is written to; nil before the first Append
	last     uint64     // sequence given out last
	ordinal  uint64     // of the newest segment
	end      Position   // behind the newest batch
	closed   bool
	reading  *segment // whose file is open for reading, beside active
	stats    Stats
}

// Append numbers a batch, makes it durable and answers its sequence. encode is
// called once, with the sequence, for the bytes to keep. When Append returns an
// error nothing is kept and the caller counts the loss; the error wraps
// ErrTooLarge, or what the disk said (syscall.ENOSPC when it is full), and a later
// Append may succeed.
func (s *Spool) Append(samples uint64, encode func(sequence uint64) ([]byte, error)) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errors.New("spool: append: closed")
	}

	sequence := s.last + 1
	data, err := encode(sequence)
	if err != nil {
		return 0, fmt.Errorf("spool: encode batch %d: %w", sequence, err)
	}
	if size := headerBytes + int64(len(data)); size > s.cfg.maxRecord() {
		return 0, fmt.Errorf("spool: batch %d of %d bytes: %w (%d at most)", sequence, size, ErrTooLarge, s.cfg.maxRecord())
	}
	h := header{kind: kindBatch, sequence: sequence, samples: samples, unixNano: s.cfg.Now().UnixNano()}
	raw := appendRecord(make([]byte, 0, headerBytes+len(data)), h, data)

	s.makeRoom(int64(len(raw)))
	if err := s.ensureActive(int64(len(raw))); err != nil {
		return 0, fmt.Errorf("spool: new segment for batch %d: %w", sequence, err)
	}
	offset := s.active.size
	if err := s.write(raw, true); err != nil {
		return 0, fmt.Errorf("spool: append batch %d: %w", sequence, err)
	}

	b := entry{sequence: sequence, samples: samples, unixNano: h.unixNano, offset: offset, length: uint32(len(data))}
	s.active.batches = append(s.active.batches, b)
	s.last, s.active.last = sequence, sequence
	s.end++
	s.hold(b)
	s.wake()
	return sequence, nil
}

// Read answers the oldest batch at or behind from, and the position behind it.
// ok is false when there is none yet; Ready tells when to ask again. A batch that cannot
// be read is counted as lost and passed over.
func (s *Spool) Read(from Position) (b Batch, next Position, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Batch{}, from, false
	}
	s.makeRoom(0)
	for _, seg := range s.segments {
		first := max(seg.head, int(max(from, seg.position)-seg.position))
		for i := first; i < len(seg.batches); i++ {
			e := &seg.batches[i]
			if e.dead {
				continue
			}
			data, err := s.read(seg, *e)
			if err != nil {
				s.stats.Damaged++
				s.lost(lostPlace, max(e.samples, 1)) // a batch of readings only is a loss too
				s.release(*e)
				e.dead = true
				continue
			}
			return Batch{BootID: seg.bootID, Sequence: e.sequence, Samples: e.samples, Data: data}, seg.position + Position(i) + 1, true
		}
	}
	return Batch{}, from, false
}

// Ready receives after an Append. It has room for one token, so it says "look
// again" and not how often.
func (s *Spool) Ready() <-chan struct{} { return s.ready }

// Ack forgets the batches of bootID up to sequence, provided they are the oldest;
// it answers how many there were.
func (s *Spool) Ack(bootID string, sequence uint64) (batches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	for _, seg := range s.segments {
		if seg.done() {
			continue
		}
		if seg.bootID != bootID {
			break
		}
		for !seg.done() && seg.batches[seg.head].sequence <= sequence {
			s.release(seg.pop())
			batches++
		}
		if !seg.done() {
			break
		}
	}
	if batches == 0 {
		return 0
	}
	s.trim()
	if s.active != nil {
		// Not synced and free to fail: what is forgotten here is sent once more.
		h := header{kind: kindAck, sequence: sequence, unixNano: s.cfg.Now().UnixNano()}
		_ = s.write(appendRecord(nil, h, []byte(bootID)), false)
	}
	return batches
}

// SkipTo makes every later sequence higher than one that is known to be taken.
func (s *Spool) SkipTo(sequence uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, sequence)
}

// LastSequence is the highest sequence given out in this boot.
func (s *Spool) LastSequence() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Stats answers what the spool holds now and has lost.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Close lets go of the folder. What a spool in memory still held is counted as lost.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.stats.InMemory {
		for _, seg := range s.segments {
			s.drop(seg)
		}
	}
	s.closeReading()
	var err error
	if s.active != nil {
		err = s.active.file.Close()
	}
	return errors.Join(err, s.folder.close())
}

// read answers the payload of a batch, checked.
func (s *Spool) read(seg *segment, e entry) ([]byte, error) {
	f, err := s.fileOf(seg)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, headerBytes+int(e.length))
	if _, err := f.ReadAt(raw, e.offset); err != nil {
		return nil, err
	}
	h, ok := parseHeader(raw)
	data := raw[headerBytes:]
	if !ok || h.sequence != e.sequence || crc32.Checksum(data, castagnoli) != h.checksum {
		return nil, errors.New("checksum differs")
	}
	return data, nil
}

// fileOf keeps one segment open for reading beside the one being written, however
// many there are.
func (s *Spool) fileOf(seg *segment) (file, error) {
	if seg.file != nil {
		return seg.file, nil
	}
	s.closeReading()
	f, err := s.folder.open(seg.name)
	if err != nil {
		return nil, err
	}
	seg.file, s.reading = f, seg
	return f, nil
}

func (s *Spool) closeReading() {
	if s.reading == nil {
		return
	}
	s.reading.file.Close()
	s.reading.file, s.reading = nil, nil
}

// write puts raw behind the active segment, whole or not at all.
func (s *Spool) write(raw []byte, durable bool) error {
	seg := s.active
	if _, err := seg.file.WriteAt(raw, seg.size); err != nil {
		if seg.file.Truncate(seg.size) != nil {
			s.retire()
		}
		return err
	}
	if durable {
		if err := seg.file.Sync(); err != nil {
			// After a failed sync nobody knows what is on disk: the number may be
			// there, and the next sync of this file may lie.
			_ = seg.file.Truncate(seg.size)
			s.last++
			s.retire()
			return err
		}
	}
	seg.size += int64(len(raw))
	s.stats.DiskBytes += int64(len(raw))
	return nil
}

func (s *Spool) hold(e entry) {
	s.stats.Batches++
	s.stats.Samples += e.samples
	s.stats.Bytes += int64(e.length)
}

func (s *Spool) release(e entry) {
	s.stats.Batches--
	s.stats.Samples -= e.samples
	s.stats.Bytes -= int64(e.length)
}

func (s *Spool) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
