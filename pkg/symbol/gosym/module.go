// SPDX-License-Identifier: Apache-2.0

package gosym

import (
	"encoding/binary"
	"io"

	"diagon.dev/diagon/pkg/symbol/elf"
)

// module is what is needed of runtime.moduledata.
type module struct{ text, gofunc uint64 }

// Words of runtime.moduledata, unchanged from Go 1.20 to 1.26.
const (
	wordPCHeader = 0
	wordMinPC    = 20
	wordText     = 22
	wordGoFunc   = 40
	moduleWords  = 42
)

const (
	maxData       = 32 << 20 // bytes of data searched for the module data
	maxRelocation = 64 << 20 // bytes of relocations searched

	shtRela       = 4
	relaSize      = 24
	relativeAMD64 = 8
	relativeARM64 = 1027
	maxCandidates = 16
)

// findModule finds runtime.firstmoduledata, which begins with the address of
// pclntab. Go 1.26 puts it into a section of its own; before, it lies in
// .noptrdata. Position-independent programs hold zeros there and the values in their
// relocations.
func findModule(f *elf.File, r io.ReaderAt, size int64, pclntab uint64) (module, bool) {
	for _, name := range []string{".go.module", ".noptrdata", ".data"} {
		s := f.Section(name)
		if s == nil {
			continue
		}
		data, err := s.Range(size)
		if err != nil {
			continue
		}
		if m, ok := searchData(f, r, data, pclntab); ok {
			return m, true
		}
	}
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Type == shtRela && s.Addr != 0 {
			rela, err := s.Range(size)
			if err != nil {
				continue
			}
			if m, ok := searchRelocations(f, r, rela, pclntab); ok {
				return m, true
			}
		}
	}
	return module{}, false
}

// plausible guards against a chance hit: text must be code of this file.
func plausible(f *elf.File, minPC, text, gofunc uint64) bool {
	if text == 0 || minPC < text || gofunc == 0 {
		return false
	}
	for i := range f.Segments {
		if s := &f.Segments[i]; s.Exec() && text >= s.VAddr && text-s.VAddr < s.FileSize {
			return true
		}
	}
	return false
}

func searchData(f *elf.File, r io.ReaderAt, data elf.Range, pclntab uint64) (module, bool) {
	const chunk, overlap = 64 << 10, moduleWords * 8
	le := binary.LittleEndian
	buf := make([]byte, chunk+overlap)
	for off := uint64(0); off+overlap <= min(data.Size, maxData); off += chunk {
		b := buf[:min(uint64(len(buf)), data.Size-off)]
		if err := data.ReadAt(r, b, off); err != nil {
			return module{}, false
		}
		for i := 0; i+overlap <= len(b); i += 8 {
			if le.Uint64(b[i+8*wordPCHeader:]) != pclntab {
				continue
			}
			minPC, text, gofunc := le.Uint64(b[i+8*wordMinPC:]), le.Uint64(b[i+8*wordText:]), le.Uint64(b[i+8*wordGoFunc:])
			if plausible(f, minPC, text, gofunc) {
				return module{text, gofunc}, true
			}
		}
	}
	return module{}, false
}

func searchRelocations(f *elf.File, r io.ReaderAt, rela elf.Range, pclntab uint64) (module, bool) {
	var candidates []uint64
	eachRelative(r, rela, func(at, value uint64) {
		if value == pclntab && len(candidates) < maxCandidates {
			candidates = append(candidates, at)
		}
	})
	if len(candidates) == 0 {
		return module{}, false
	}
	words := make([][moduleWords]uint64, len(candidates))
	eachRelative(r, rela, func(at, value uint64) {
		for i, c := range candidates {
			if at >= c && at-c < moduleWords*8 && (at-c)%8 == 0 {
				words[i][(at-c)/8] = value
			}
		}
	})
	for _, w := range words {
		if plausible(f, w[wordMinPC], w[wordText], w[wordGoFunc]) {
			return module{w[wordText], w[wordGoFunc]}, true
		}
	}
	return module{}, false
}

// eachRelative calls each with the place and the value of every relocation that
// only adds the load address.
func eachRelative(r io.ReaderAt, rela elf.Range, each func(at, value uint64)) {
	const batch = 2048 * relaSize
	le := binary.LittleEndian
	buf := make([]byte, batch)
	for off, end := uint64(0), min(rela.Size, maxRelocation)/relaSize*relaSize; off < end; off += batch {
		b := buf[:min(batch, end-off)]
		if err := rela.ReadAt(r, b, off); err != nil {
			return
		}
		for ; len(b) > 0; b = b[relaSize:] {
			if kind := le.Uint64(b[8:]); kind == relativeAMD64 || kind == relativeARM64 {
				each(le.Uint64(b), le.Uint64(b[16:]))
			}
		}
	}
}
