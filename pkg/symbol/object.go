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
	local  bool   // all its files lie on file systems that answer
	why    string // why it has fewer names than it might have; "" when it has all

	from    opener
	pending *task // a look into the file that has not come back
	used    time.Time
}

// A table and the file it reads names from.
type table struct {
	*elf.Table
	in     source
	serial uint64 // owner of its spans in Symbolizer.spans; 0 until the object is admitted
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

// A found is what an object knows of an address, before interning.
type found struct {
	start uint64         // of the function, as an offset into the file
	lines []profile.Line // empty: it has no name
	// table, nearest and span say where the answer came from, and for which offsets
	// it holds; table is 0 when it holds for the one only.
	table   uint64
	nearest int
	span    elf.Span // of virtual addresses
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
			return found{start: o.start(f.Entry, off), lines: f.Lines}, true, nil
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
		s, span, ok, err := t.Lookup(r, vaddr)
		if err != nil {
			failed = err
			continue
		}
		if ok {
			return found{
				start: o.start(s.Start, off), lines: []profile.Line{{Function: pretty(s.Name)}},
				table: t.serial, nearest: t.Nearest(vaddr), span: span,
			}, true, nil
		}
	}
	return found{}, false, failed
}

// start is a function's start as an offset into the file.
func (o *object) start(vaddr, off uint64) uint64 {
	if start, ok := o.elf.Offset(vaddr); ok {
		return start
	}
	return off
}

// ready reports whether a lookup will open nothing and read only what is sure to answer.
func (o *object) ready(files *files) bool {
	if !o.local || files.get(o.id) == nil && o.reads() {
		return false
	}
	for i := range o.tables {
		if d := o.tables[i].in.debug; d != nil && files.get(d.id) == nil {
			return false
		}
	}
	return true
}

// reads reports whether lookups read the object's own file.
func (o *object) reads() bool {
	if o.golang != nil {
		return true
	}
	for i := range o.tables {
		if in := o.tables[i].in; in.memory == nil && in.debug == nil {
			return true
		}
	}
	return false
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
