// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"io"
	"os"
	"time"

	"diagon.dev/diagon/pkg/procmaps"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/symbol/elf"
	"diagon.dev/diagon/pkg/symbol/gosym"
)

// An object is a file that code was mapped from, with the tables that name its
// functions. Its tables are immutable once loaded. They are shared by file and
// not by build-id, which anybody can write into a file: else one container could
// give names to the functions of another.
type object struct {
	serial  uint64 // owner of its addresses in Symbolizer.places
	id      fileID
	mapping *profile.Mapping
	buildID string

	elf    *elf.File    // nil: not an ELF file
	golang *gosym.Table // nil: no Go program
	tables []table      // tried in this order
	bytes  int64
	why    string // why it has fewer names than it might have; "" when it has all

	from    opener
	pending *task // a look into the file that has not come back
	used    time.Time
}

// A table and the file it reads names from.
type table struct {
	*elf.Table
	in source
}

// A source is where a table's bytes are: in the object's file, in memory, or in
// a separate file.
type source struct {
	memory []byte
	debug  *debugFile
}

// An opener is a way to open a file again.
type opener struct {
	dir *os.File // of the process in /proc; nil for what is no process's
	m   procmaps.Mapping
}

// found is a name, before interning.
type found struct {
	start uint64 // of the function, as an offset into the file
	lines []profile.Line
}

// lookup names an offset into the object's file. It reads files and may block.
func (o *object) lookup(files *files, from opener, off uint64) (found, bool, error) {
	if o.elf == nil {
		return found{}, false, nil
	}
	vaddr, ok := o.elf.VAddr(off)
	if !ok {
		return found{}, false, nil
	}
	if o.golang != nil {
		r, err := files.object(o, from)
		if err != nil {
			return found{}, false, err
		}
		// A damaged function hides itself, not the rest of the file.
		if f, ok, err := o.golang.Lookup(r, vaddr); ok && err == nil {
			return o.at(f.Entry, off, f.Lines), true, nil
		}
	}
	var failed error
	for i := range o.tables {
		t := &o.tables[i]
		r, err := o.reader(files, from, &t.in)
		if err != nil {
			failed = err
			continue
		}
		s, ok, err := t.Lookup(r, vaddr)
		if err != nil {
			failed = err
			continue
		}
		if ok {
			return o.at(s.Start, off, []profile.Line{{Function: pretty(s.Name)}}), true, nil
		}
	}
	return found{}, false, failed
}

func (o *object) at(vaddr, off uint64, lines []profile.Line) found {
	if start, ok := o.elf.Offset(vaddr); ok {
		return found{start, lines}
	}
	return found{off, lines}
}

func (o *object) reader(files *files, from opener, in *source) (io.ReaderAt, error) {
	switch {
	case in.memory != nil:
		return bytes.NewReader(in.memory), nil
	case in.debug != nil:
		return files.debug(in.debug, from)
	}
	return files.object(o, from)
}
