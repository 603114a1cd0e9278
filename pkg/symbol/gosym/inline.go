// SPDX-License-Identifier: Apache-2.0

package gosym

import (
	"encoding/binary"
	"fmt"
	"io"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/symbol/elf"
)

const (
	inlinedCallSize = 16 // runtime.inlinedCall: funcID, pad, nameOff, parentPc, startLine
	maxInlined      = 64 // calls at one address
)

// inlineTrees is where go:func.* lies in the file; the zero value: not known.
type inlineTrees struct{ data elf.Range }

// locateInlineTrees bounds go:func.* by the segment that it lies in.
func locateInlineTrees(f *elf.File, size int64, gofunc uint64) inlineTrees {
	for i := range f.Segments {
		s := &f.Segments[i]
		if s.Type != 1 || gofunc < s.VAddr || gofunc-s.VAddr >= s.FileSize {
			continue
		}
		skip := gofunc - s.VAddr
		off, n := s.Offset+skip, s.FileSize-skip
		if off < s.Offset || size < 0 || off > uint64(size) || n > uint64(size)-off {
			break
		}
		return inlineTrees{elf.Range{Offset: off, Size: n}}
	}
	return inlineTrees{}
}

// inlined returns the calls inlined at pc, innermost first, and the pc whose
// position is that of the outermost call in the function itself. known is false
// when there are such calls but the tree of them is not to be had.
func (t *Table) inlined(r io.ReaderAt, f function, pc uint32) (lines []profile.Line, outer uint32, known bool, err error) {
	for range maxInlined {
		index, err := t.value(r, f.inlineIndex, pc)
		if err != nil {
			return nil, 0, false, err
		}
		if index < 0 {
			return lines, pc, true, nil
		}
		if !f.hasInlineTab || t.inline.data.Size == 0 {
			return nil, pc, false, nil
		}
		var call [inlinedCallSize]byte
		if err := t.inline.data.ReadAt(r, call[:], uint64(f.inlineTree)+uint64(index)*inlinedCallSize); err != nil {
			return nil, 0, false, fmt.Errorf("inline tree: %w", err)
		}
		name, err := t.str(r, t.names+uint64(binary.LittleEndian.Uint32(call[4:])))
		if err != nil {
			return nil, 0, false, fmt.Errorf("inline tree: %w", err)
		}
		line := profile.Line{Function: printed(name)}
		line.File, line.Number = t.position(r, f, pc)
		lines = append(lines, line)
		pc = binary.LittleEndian.Uint32(call[8:])
	}
	return nil, 0, false, fmt.Errorf("inline tree: more than %d calls deep: %w", maxInlined, ErrFormat)
}
