// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

type kind uint32

const (
	kindMark  kind = 1 // sequence: the last one given out before this segment
	kindBatch kind = 2
	kindAck   kind = 3 // sequence: acknowledged up to here; payload: of which boot
)

const headerBytes = 44

var (
	magic      = []byte("dgn\x01")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// A header stands before every record's payload.
type header struct {
	kind     kind
	length   uint32
	checksum uint32
	sequence uint64
	samples  uint64
	unixNano int64
}

// appendRecord writes a header and its payload behind b.
func appendRecord(b []byte, h header, payload []byte) []byte {
	start := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.kind))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	b = binary.LittleEndian.AppendUint64(b, h.sequence)
	b = binary.LittleEndian.AppendUint64(b, h.samples)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.unixNano))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	return append(b, payload...)
}

// parseHeader understands the first headerBytes of raw; ok is false unless magic
// and checksum hold.
func parseHeader(raw []byte) (h header, ok bool) {
	if len(raw) < headerBytes || !bytes.Equal(raw[:4], magic) {
		return header{}, false
	}
	if crc32.Checksum(raw[:40], castagnoli) != binary.LittleEndian.Uint32(raw[40:]) {
		return header{}, false
	}
	return header{
		kind:     kind(binary.LittleEndian.Uint32(raw[4:])),
		length:   binary.LittleEndian.Uint32(raw[8:]),
		checksum: binary.LittleEndian.Uint32(raw[12:]),
		sequence: binary.LittleEndian.Uint64(raw[16:]),
		samples:  binary.LittleEndian.Uint64(raw[24:]),
		unixNano: int64(binary.LittleEndian.Uint64(raw[32:])),
	}, true
}

// damage is what scan met that was not a whole record.
type damage struct {
	records int   // at least this many records could not be read
	torn    int64 // bytes of a record cut short at the end, as a crash leaves it
}

// scan calls visit for every record in the first size bytes of r, in order. It
// reads headers only: a payload is checked when it is read.
func scan(r io.ReaderAt, size int64, visit func(h header, offset int64)) (damage, error) {
	var found damage
	var raw [headerBytes]byte
	for offset := int64(0); offset < size; {
		rest := size - offset
		if rest < headerBytes {
			found.torn = rest
			return found, nil
		}
		if _, err := r.ReadAt(raw[:], offset); err != nil {
			return found, fmt.Errorf("read header at %d: %w", offset, err)
		}

		h, ok := parseHeader(raw[:])
		if !ok {
			next, zeros, err := findHeader(r, size, offset)
			if err != nil {
				return found, err
			}
			// A file that grew before its bytes arrived ends in zeros.
			if next == size && zeros {
				found.torn = rest
				return found, nil
			}
			found.records++
			offset = next
			continue
		}
		if int64(h.length) > rest-headerBytes {
			found.torn = rest
			return found, nil
		}
		visit(h, offset)
		offset += headerBytes + int64(h.length)
	}
	return found, nil
}

// findHeader answers where behind offset the next whole header stands, or size;
// zeros says that all bytes passed over are zero.
func findHeader(r io.ReaderAt, size, offset int64) (next int64, zeros bool, err error) {
	const step = 64 << 10
	buf := make([]byte, step+headerBytes)
	zeros = true
	for at := offset; at < size; at += step {
		n := min(int64(len(buf)), size-at)
		if _, err := r.ReadAt(buf[:n], at); err != nil {
			return 0, false, fmt.Errorf("look for a header at %d: %w", at, err)
		}
		chunk := buf[:n]
		for from := 0; ; {
			i := bytes.Index(chunk[from:], magic)
			if i < 0 {
				break
			}
			from += i
			if from >= step {
				break // the next round sees all of it
			}
			if _, ok := parseHeader(chunk[from:]); ok && at+int64(from) > offset {
				return at + int64(from), false, nil
			}
			from++
		}
		zeros = zeros && len(bytes.TrimLeft(chunk[:min(step, int(n))], "\x00")) == 0
	}
	return size, zeros, nil
}
