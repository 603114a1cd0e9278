// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"errors"
	"io"
	"os"

	"diagon.dev/diagon/pkg/symbol/elf"
	"diagon.dev/diagon/pkg/symbol/gosym"
)

// maxMiniDebug bounds .gnu_debugdata, unpacked. Its symbols stay in memory, so it is also
// bounded by a share of the cache.
const maxMiniDebug = 8 << 20

// load reads what is needed of a file to name its functions. It blocks on
// files. What cannot be read leaves the object with fewer names, and a reason.
func load(o *object, r *os.File, cfg Config, files *files) {
	size := o.id.size
	f, err := elf.Read(r, size)
	if err != nil {
		o.why = "format"
		return
	}
	o.elf = f
	o.buildID = f.BuildID(r, size)
	if o.golang, err = gosym.Open(f, r, size); err != nil {
		o.note(err)
	}
	if o.golang != nil {
		o.bytes += o.golang.Bytes()
	}
	o.local = isLocal(r)
	if !o.addSymtab(f, r, cfg, files) {
		o.addMiniDebug(f, r, cfg)
		o.add(f, r, size, elf.Dynsym, cfg.functions(), source{})
	}

	// Only the way from offsets to addresses is needed from here on.
	f.Sections = nil
	o.bytes += f.Bytes() + 512
}

// addSymtab adds the full table of the file or of its debug file.
func (o *object) addSymtab(f *elf.File, r io.ReaderAt, cfg Config, files *files) bool {
	if o.add(f, r, o.id.size, elf.Symtab, cfg.functions(), source{}) {
		return true
	}
	debug := findDebugFile(o, f, r, files.host)
	if debug == nil {
		return false
	}
	defer debug.file.Close()
	df, err := elf.Read(debug.file, debug.id.size)
	if err != nil {
		o.note(err)
		return false
	}
	o.local = o.local && isLocal(debug.file)
	return o.add(df, debug.file, debug.id.size, elf.Symtab, cfg.functions(), source{debug: &debug.debugFile})
}

func (o *object) addMiniDebug(f *elf.File, r io.ReaderAt, cfg Config) {
	b, err := f.MiniDebug(r, o.id.size, int(min(maxMiniDebug, cfg.CacheBytes/4)))
	if err != nil {
		o.note(err)
		return
	}
	if b == nil {
		return
	}
	mini := bytes.NewReader(b)
	mf, err := elf.Read(mini, int64(len(b)))
	if err != nil {
		o.note(err)
		return
	}
	if o.add(mf, mini, int64(len(b)), elf.Symtab, cfg.functions(), source{memory: b}) {
		o.bytes += int64(len(b))
	}
}

// add adds one table of a file, and reports whether it holds anything.
func (o *object) add(f *elf.File, r io.ReaderAt, size int64, which elf.Which, limit int, in source) bool {
	t, err := f.Functions(r, size, which, limit)
	if err != nil {
		o.note(err)
		return false
	}
	if t.Len() == 0 {
		return false
	}
	if t.Skipped > 0 {
		o.why = "too large"
	}
	o.tables = append(o.tables, table{Table: t, in: in})
	o.bytes += t.Bytes()
	return true
}

// note keeps the reason that says most.
func (o *object) note(err error) {
	if errors.Is(err, elf.ErrTooLarge) {
		o.why = "too large"
	} else if o.why == "" {
		o.why = "format"
	}
}
