// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// build lays out an ELF file: one segment of code at 0x1000 over the first 4 KiB,
// and the sections given.
func build(sections ...Section) []byte {
	le := binary.LittleEndian
	b := make([]byte, 4096)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], segmentSize)
	le.PutUint16(b[56:], 1)
	le.PutUint32(b[64:], ptLoad)
	le.PutUint32(b[68:], pfExec)
	le.PutUint64(b[64+16:], 0x1000)
	le.PutUint64(b[64+32:], 4096)
	le.PutUint64(b[64+40:], 4096)
	le.PutUint64(b[40:], 4096)
	le.PutUint16(b[58:], sectionSize)
	le.PutUint16(b[60:], uint16(len(sections)+1))
	headers := make([]byte, sectionSize)
	for _, s := range sections {
		h := make([]byte, sectionSize)
		le.PutUint32(h[4:], s.Type)
		le.PutUint64(h[8:], s.Flags)
		le.PutUint64(h[16:], s.Addr)
		le.PutUint64(h[24:], s.Offset)
		le.PutUint64(h[32:], s.Size)
		le.PutUint32(h[40:], s.Link)
		headers = append(headers, h...)
	}
	return append(b, headers...)
}

// A sym is a symbol to lay out.
type sym struct {
	name        string
	info        byte
	value, size uint64
}

const (
	globalFunc = stbGlobal<<4 | sttFunc
	weakFunc   = 2<<4 | sttFunc
	localFunc  = stbLocal<<4 | sttFunc
	globalNone = stbGlobal << 4
)

// withSymbols is a file that has symbols.
func withSymbols(symbols ...sym) []byte {
	const symbolsAt, namesAt = 512, 2048
	b := build(
		Section{Type: shtSymtab, Offset: symbolsAt, Size: uint64(len(symbols)) * symbolSize, Link: 2},
		Section{Type: 3, Offset: namesAt, Size: 1024},
		Section{Type: 1, Flags: shfExec, Addr: 0x1000, Size: 4096},
	)
	name := uint32(1)
	for i, s := range symbols {
		at := b[symbolsAt+i*symbolSize:]
		binary.LittleEndian.PutUint32(at, name)
		at[4] = s.info
		binary.LittleEndian.PutUint16(at[6:], 3)
		binary.LittleEndian.PutUint64(at[8:], s.value)
		binary.LittleEndian.PutUint64(at[16:], s.size)
		copy(b[namesAt+name:], s.name)
		name += uint32(len(s.name)) + 1
	}
	return b
}

func TestLookup(t *testing.T) {
	for _, tt := range []struct {
		name    string
		symbols []sym
		at      uint64
		want    string
	}{
		{"the first byte", []sym{{"f", globalFunc, 0x1100, 16}}, 0x1100, "f"},
		{"the last byte", []sym{{"f", globalFunc, 0x1100, 16}}, 0x110f, "f"},
		{"behind the end there is no function", []sym{{"f", globalFunc, 0x1100, 16}, {"g", globalFunc, 0x1200, 16}}, 0x1110, ""},
		{"before the first there is no function", []sym{{"f", globalFunc, 0x1100, 16}}, 0x10ff, ""},
		{"a label inside a function hides it no longer than it lasts", []sym{{"f", globalFunc, 0x1100, 64}, {"label", localFunc, 0x1110, 4}}, 0x1120, "f"},
		{"a label without size does not hide its function", []sym{{"f", globalFunc, 0x1100, 64}, {"label", globalNone, 0x1110, 0}}, 0x1120, "f"},
		{"assembler without size reaches to the next symbol", []sym{{"f", globalFunc, 0x1100, 0}, {"g", globalFunc, 0x1200, 16}}, 0x11ff, "f"},
		{"assembler without size reaches not far", []sym{{"f", globalFunc, 0x1100, 0}}, 0x1100 + 4096, ""},
		{"an exported name before a local one", []sym{{"aa", localFunc, 0x1100, 16}, {"zz", globalFunc, 0x1100, 16}}, 0x1100, "zz"},
		{"fewer underscores", []sym{{"__libc_f", globalFunc, 0x1100, 16}, {"f_name", weakFunc, 0x1100, 16}}, 0x1100, "f_name"},
		{"a mangled name's underscore does not count", []sym{{"_Zf", globalFunc, 0x1100, 16}, {"long", weakFunc, 0x1100, 16}}, 0x1100, "_Zf"},
		{"a version is no part of the name", []sym{{"memcpy@@GLIBC_2.14", globalFunc, 0x1100, 16}}, 0x1100, "memcpy"},
		{"an object is no function", []sym{{"data", stbGlobal<<4 | 1, 0x1100, 16}}, 0x1100, ""},
		{"a size that runs over the address space", []sym{{"f", globalFunc, 0x1100, math.MaxUint64}}, 0x1104, "f"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			raw := withSymbols(tt.symbols...)
			r := bytes.NewReader(raw)
			f, err := Read(r, r.Size())
			if err != nil {
				t.Fatal(err)
			}
			table, err := f.Functions(r, r.Size(), Symtab, 100)
			if err != nil {
				t.Fatal(err)
			}
			got, span, ok, err := table.Lookup(r, tt.at)
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got.Name, ok, tt.want)
			}
			checkSpan(t, table, r, tt.at, got, span)
		})
	}
}

// checkSpan wants the answer for an address to hold for all that it says it does.
func checkSpan(t *testing.T, table *Table, r *bytes.Reader, at uint64, want Symbol, span Span) {
	t.Helper()
	if at < span.Low || at >= span.High && span.High != math.MaxUint64 {
		t.Fatalf("%#x does not lie in its own span %+v", at, span)
	}
	for _, other := range []uint64{span.Low, span.High - 1, span.Low + (span.High-span.Low)/2} {
		if got, _, _, err := table.Lookup(r, other); err == nil && got != want {
			t.Errorf("%#x is %+v and %#x is %+v, within %+v", at, want, other, got, span)
		}
		if table.Nearest(other) != table.Nearest(at) {
			t.Errorf("the span of %#x goes over a start", at)
		}
	}
}

func TestLiesOfHeaders(t *testing.T) {
	le := binary.LittleEndian
	for _, tt := range []struct {
		name string
		lie  func(b []byte)
		err  error
	}{
		{"not ELF", func(b []byte) { b[0] = 0 }, ErrFormat},
		{"32 bits", func(b []byte) { b[4] = 1 }, ErrFormat},
		{"big-endian", func(b []byte) { b[5] = 2 }, ErrFormat},
		{"program headers behind the end", func(b []byte) { le.PutUint64(b[32:], 1<<40) }, ErrFormat},
		{"program headers that wrap around", func(b []byte) { le.PutUint64(b[32:], math.MaxUint64-8) }, ErrFormat},
		{"65,535 program headers", func(b []byte) { le.PutUint16(b[56:], 0xffff) }, ErrTooLarge},
		{"section headers behind the end", func(b []byte) { le.PutUint64(b[40:], 1<<62) }, ErrFormat},
		{"four billion sections", func(b []byte) {
			le.PutUint16(b[60:], 0)
			le.PutUint64(b[4096+32:], 1<<32)
		}, ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := withSymbols(sym{"f", globalFunc, 0x1100, 16})
			tt.lie(b)
			if _, err := Read(bytes.NewReader(b), int64(len(b))); !errors.Is(err, tt.err) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
		})
	}
}

func TestLiesOfSymbolTables(t *testing.T) {
	le := binary.LittleEndian
	const symtab, strtab = 4096 + sectionSize, 4096 + 2*sectionSize
	for _, tt := range []struct {
		name string
		lie  func(b []byte)
		err  error
	}{
		{"a table of terabytes", func(b []byte) { le.PutUint64(b[symtab+32:], 1<<45) }, ErrFormat},
		{"a table behind the end", func(b []byte) { le.PutUint64(b[symtab+24:], 1<<20) }, ErrFormat},
		{"names behind the end", func(b []byte) { le.PutUint64(b[strtab+32:], 1<<20) }, ErrFormat},
		{"names in a section that is not there", func(b []byte) { le.PutUint32(b[symtab+40:], 77) }, ErrFormat},
		{"a compressed table", func(b []byte) { le.PutUint64(b[symtab+8:], shfCompressed) }, ErrFormat},
		{"more functions than are taken", func(b []byte) {}, ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := withSymbols(sym{"f", globalFunc, 0x1100, 16}, sym{"g", globalFunc, 0x1200, 16})
			tt.lie(b)
			r := bytes.NewReader(b)
			f, err := Read(r, r.Size())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Functions(r, r.Size(), Symtab, 1); !errors.Is(err, tt.err) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
		})
	}
}

func TestWhereTwoSegmentsShareAPageCodeWins(t *testing.T) {
	f := &File{Segments: []Segment{
		{Type: ptLoad, Offset: 0, FileSize: 0x1800, VAddr: 0},
		{Type: ptLoad, Flags: pfExec, Offset: 0x1000, FileSize: 0x1000, VAddr: 0x2000},
	}}
	if got, ok := f.VAddr(0x1400); !ok || got != 0x2400 {
		t.Errorf("VAddr = %#x, %v", got, ok)
	}
	if _, ok := f.VAddr(0x2000); ok {
		t.Error("an offset behind all segments has an address")
	}
	if got, ok := f.Offset(0x2400); !ok || got != 0x1400 {
		t.Errorf("Offset = %#x, %v", got, ok)
	}
}

func TestDebugLink(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     string
		sum      uint32
	}{
		{"a name and its checksum", "lib.debug\x00\x00\x00\x78\x56\x34\x12", "lib.debug", 0x12345678},
		{"a path is refused", "../../etc/shadow\x00\x00\x00\x00\x78\x56\x34\x12", "", 0},
		{"the parent is refused", "..\x00\x00\x78\x56\x34\x12", "", 0},
		{"no end", "lib", "", 0},
		{"no checksum", "lib.debug\x00\x00\x00\x78", "", 0},
		{"nothing", "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, sum, ok := parseDebugLink([]byte(tt.in))
			if got != tt.want || sum != tt.sum || ok != (tt.want != "") {
				t.Errorf("got %q, %#x, %v", got, sum, ok)
			}
		})
	}
}

func TestBuildIDs(t *testing.T) {
	note := func(name string, kind uint32, desc string) string {
		b := make([]byte, 12)
		binary.LittleEndian.PutUint32(b, uint32(len(name)))
		binary.LittleEndian.PutUint32(b[4:], uint32(len(desc)))
		binary.LittleEndian.PutUint32(b[8:], kind)
		pad := func(s string) string { return s + strings.Repeat("\x00", int(align4(uint64(len(s))))-len(s)) }
		return string(b) + pad(name) + pad(desc)
	}
	for _, tt := range []struct{ name, in, gnu, golang string }{
		{"GNU's", note("GNU\x00", 3, "\xab\xcd"), "abcd", ""},
		{"Go's behind another note", note("GNU\x00", 1, "1234567") + note("Go\x00\x00", 4, "x/y"), "", "782f79"},
		{"both", note("Go\x00\x00", 4, "x") + note("GNU\x00", 3, "\x01"), "01", "78"},
		{"a length that runs over the end", "\x04\x00\x00\x00\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00ab", "", ""},
		{"a description too long for a build-id", note("GNU\x00", 3, strings.Repeat("x", 65)), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gnu, golang := BuildIDs([]byte(tt.in))
			if gnu != tt.gnu || golang != tt.golang {
				t.Errorf("got %q, %q", gnu, golang)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(withSymbols(sym{"f", globalFunc, 0x1100, 16}, sym{"label", globalNone, 0x1110, 0}), uint64(0x1104))
	f.Fuzz(func(t *testing.T, raw []byte, at uint64) {
		r := bytes.NewReader(raw)
		file, err := Read(r, r.Size())
		if err != nil {
			return
		}
		file.BuildID(r, r.Size())
		file.DebugLink(r, r.Size())
		if b, err := file.MiniDebug(r, r.Size(), 1<<20); err == nil && len(b) > 1<<20 {
			t.Errorf("unpacked %d bytes", len(b))
		}
		for _, which := range []Which{Symtab, Dynsym} {
			table, err := file.Functions(r, r.Size(), which, 1000)
			if err != nil {
				continue
			}
			s, span, ok, err := table.Lookup(r, at)
			if ok && (err != nil || s.Name == "" || s.Start > at) {
				t.Errorf("Lookup(%#x) = %+v, %v", at, s, err)
			}
			if err == nil {
				checkSpan(t, table, r, at, s, span)
			}
		}
	})
}

func FuzzBuildIDs(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00GNU\x00ab\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) { BuildIDs(raw) })
}

func FuzzDebugLink(f *testing.F) {
	f.Add([]byte("lib.debug\x00\x00\x00\x78\x56\x34\x12"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if name, _, ok := parseDebugLink(raw); ok && (name == "" || strings.Contains(name, "/")) {
			t.Errorf("name %q", name)
		}
	})
}
