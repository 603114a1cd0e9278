// SPDX-License-Identifier: Apache-2.0

package gosym

import (
	"fmt"
	"io"
)

// maxTable bounds the bytes read of one pc table. Generated init functions have
// tables of some hundred kilobytes.
const maxTable = 1 << 20

// value looks pc, an offset from the function's entry, up in a table of
// pc-value pairs: each a signed difference of the value, then an unsigned
// difference of the pc up to which the value holds. No table, or a pc behind its
// end, is -1.
func (t *Table) value(r io.ReaderAt, table, pc uint32) (int32, error) {
	if table == 0 {
		return -1, nil
	}
	in := &pcReader{t: t, r: r, at: t.pcs + uint64(table)}
	in.left = maxTable
	val, end := int32(-1), uint64(0)
	for first := true; ; first = false {
		delta, err := in.uvarint()
		if err != nil {
			return -1, err
		}
		if delta == 0 && !first {
			return -1, nil
		}
		val += int32(delta>>1) ^ -int32(delta&1)
		step, err := in.uvarint()
		if err != nil {
			return -1, err
		}
		end += uint64(step) * uint64(t.quantum)
		if uint64(pc) < end {
			return val, nil
		}
	}
}

// pcReader reads a table byte by byte, in pieces that fit most tables whole.
type pcReader struct {
	t    *Table
	r    io.ReaderAt
	at   uint64 // of the next piece in pclntab
	left int
	buf  [256]byte
	rest []byte
}

func (p *pcReader) byte() (byte, error) {
	if len(p.rest) == 0 {
		if p.at >= p.t.pclntab.Size || p.left <= 0 {
			return 0, fmt.Errorf("pclntab: table without end: %w", ErrFormat)
		}
		n := min(uint64(len(p.buf)), p.t.pclntab.Size-p.at)
		if err := p.t.pclntab.ReadAt(p.r, p.buf[:n], p.at); err != nil {
			return 0, fmt.Errorf("pclntab: table: %w", err)
		}
		p.rest, p.at, p.left = p.buf[:n], p.at+n, p.left-int(n)
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b, nil
}

func (p *pcReader) uvarint() (uint32, error) {
	var n uint32
	for shift := 0; shift < 35; shift += 7 {
		b, err := p.byte()
		if err != nil {
			return 0, err
		}
		n |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("pclntab: number without end: %w", ErrFormat)
}
