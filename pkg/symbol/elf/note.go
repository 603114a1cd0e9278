// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"encoding/binary"
	"encoding/hex"
	"io"
)

const (
	maxNotes   = 64 << 10 // bytes of notes read per segment or section
	maxNoted   = 16       // segments and sections of notes looked at
	maxBuildID = 64       // bytes; linkers write 8, 16 or 20

	ntGNUBuildID = 3
	ntGoBuildID  = 4
)

// BuildID returns the GNU build-id in lower-case hex, or else that of Go, or "".
func (f *File) BuildID(r io.ReaderAt, size int64) string {
	gnu, golang := f.buildIDs(r, size)
	if gnu != "" {
		return gnu
	}
	return golang
}

// GNUBuildID returns the GNU build-id in lower-case hex, or "".
func (f *File) GNUBuildID(r io.ReaderAt, size int64) string {
	gnu, _ := f.buildIDs(r, size)
	return gnu
}

func (f *File) buildIDs(r io.ReaderAt, size int64) (gnu, golang string) {
	look := func(off, n uint64) {
		raw, err := readRange(r, size, off, min(n, maxNotes))
		if err != nil {
			return
		}
		g, o := BuildIDs(raw)
		if gnu == "" {
			gnu = g
		}
		if golang == "" {
			golang = o
		}
	}

	left := maxNoted
	for i := range f.Segments {
		if s := &f.Segments[i]; s.Type == ptNote && left > 0 {
			left--
			look(s.Offset, s.FileSize)
		}
	}
	// Debug files may keep the sections only.
	for i := range f.Sections {
		if s := &f.Sections[i]; s.Type == shtNote && gnu == "" && left > 0 {
			left--
			look(s.Offset, s.Size)
		}
	}
	return gnu, golang
}

// BuildIDs finds the build-ids of GNU and of Go in a run of notes, such as a
// PT_NOTE segment or /sys/kernel/notes, in lower-case hex.
func BuildIDs(notes []byte) (gnu, golang string) {
	le := binary.LittleEndian
	for len(notes) >= 12 {
		nameLen, descLen, kind := uint64(le.Uint32(notes)), uint64(le.Uint32(notes[4:])), le.Uint32(notes[8:])
		body := notes[12:]
		// Names and descriptions are padded to four bytes. The gABI asks for eight
		// in 64-bit files; only .note.gnu.property does so, and its lengths are such
		// that both readings agree.
		descAt := align4(nameLen)
		if descAt > uint64(len(body)) || descLen > uint64(len(body))-descAt {
			return gnu, golang
		}
		name, desc := string(body[:nameLen]), body[descAt:descAt+descLen]
		switch {
		case kind == ntGNUBuildID && name == "GNU\x00" && gnu == "" && 0 < descLen && descLen <= maxBuildID:
			gnu = hex.EncodeToString(desc)
		case kind == ntGoBuildID && name == "Go\x00\x00" && golang == "" && 0 < descLen && descLen <= 4*maxBuildID:
			golang = hex.EncodeToString(desc)
		}
		next := descAt + align4(descLen)
		if next > uint64(len(body)) {
			return gnu, golang
		}
		notes = body[next:]
	}
	return gnu, golang
}

func align4(n uint64) uint64 { return (n + 3) &^ 3 }
