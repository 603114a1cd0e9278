// SPDX-License-Identifier: Apache-2.0

package gosym

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"reflect"
	"runtime"
	"testing"

	"diagon.dev/diagon/pkg/symbol/elf"
)

// self opens the table of the test's own program.
func self(t testing.TB) (*Table, *os.File) {
	t.Helper()
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	headers, err := elf.Read(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(headers, f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	return table, f
}

func TestEveryFunctionReadsAsTheRuntimeTellsIt(t *testing.T) {
	table, f := self(t)
	checked, inlined, untold := 0, 0, 0
	end := table.text + uint64(table.end)
	for pc := table.text; pc < end; pc += 97 {
		fn := runtime.FuncForPC(uintptr(pc))
		if next := runtime.FuncForPC(uintptr(pc + 1)); fn == nil || next != nil && next.Entry() == uintptr(pc+1) {
			continue // CallersFrames, below, would take it for the next function
		}
		got, ok, err := table.Lookup(f, pc)
		if err != nil || !ok {
			t.Fatalf("%#x in %s: %v, %v", pc, fn.Name(), ok, err)
		}
		// Of calls inlined at an address the runtime tells the innermost here. That the
		// others are right is tested by whole stacks, in package symbol.
		want, _ := runtime.CallersFrames([]uintptr{uintptr(pc + 1)}).Next()
		if want.Function == "" {
			untold++
			continue
		}
		if want.File == "?" {
			want.File = ""
		}
		l := got.Lines[0]
		if l.Function != want.Function || l.File != want.File || l.Number != want.Line || got.Entry != uint64(fn.Entry()) {
			t.Fatalf("%#x: got %+v at %#x, want %s %s:%d at %#x", pc, l, got.Entry, want.Function, want.File, want.Line, fn.Entry())
		}
		checked++
		if len(got.Lines) > 1 {
			inlined++
		}
	}
	if checked < 1000 || inlined < 100 || untold > checked/100 {
		t.Errorf("checked %d, inlined %d, untold by the runtime %d: too few to say anything", checked, inlined, untold)
	}
	t.Logf("checked %d, inlined %d, untold %d", checked, inlined, untold)
	for _, pc := range []uint64{0, table.text - 1, end, math.MaxUint64} {
		if got, ok, err := table.Lookup(f, pc); ok || err != nil {
			t.Errorf("Lookup(%#x) = %+v, %v", pc, got, err)
		}
	}
}

func TestAProgramOfAnotherLanguageHasNoTable(t *testing.T) {
	table, err := Open(&elf.File{}, bytes.NewReader(nil), 0)
	if table != nil || err != nil {
		t.Errorf("got %v, %v", table, err)
	}
}

// tiny is a pclntab of one function, "f", of 32 bytes, behind an ELF header's place.
func tiny() ([]byte, *elf.File) {
	le := binary.LittleEndian
	b := make([]byte, 512)
	le.PutUint32(b, magic120)
	b[6], b[7] = 1, 8
	for i, word := range []uint64{1, 1, 0x1000, 80, 84, 88, 96, 104} {
		le.PutUint64(b[8+8*i:], word)
	}
	copy(b[80:], "f\x00")
	copy(b[88:], "a.go\x00")
	copy(b[96:], "\x00\x02\x20\x00\x0e\x20\x00") // file 0 and line 6 for 32 bytes
	le.PutUint32(b[104+4:], 12)                  // functions: (0, 12), then the end
	le.PutUint32(b[104+8:], 32)
	function := b[104+12:]
	le.PutUint32(function[20:], 1) // pcfile
	le.PutUint32(function[24:], 4) // pcln
	return b, &elf.File{Sections: []elf.Section{
		{Name: ".gopclntab", Type: 1, Size: uint64(len(b))},
		{Name: ".text", Type: 1, Addr: 0x1000, Size: 32},
	}}
}

func TestATinyTable(t *testing.T) {
	b, f := tiny()
	table, err := Open(f, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	got, ok, err := table.Lookup(bytes.NewReader(b), 0x1010)
	if err != nil || !ok || len(got.Lines) != 1 || got.Lines[0].Function != "f" || got.Entry != 0x1000 {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	if l := got.Lines[0]; l.File != "a.go" || l.Number != 6 {
		t.Errorf("position %s:%d", l.File, l.Number)
	}
}

func TestLies(t *testing.T) {
	for _, tt := range []struct {
		name string
		lie  func(b []byte)
	}{
		{"another version", func(b []byte) { b[0] = 0xf2 }},
		{"pointers of four bytes", func(b []byte) { b[7] = 4 }},
		{"no size of instructions", func(b []byte) { b[6] = 0 }},
		{"more functions than the table holds", func(b []byte) { b[8] = 0xff }},
		{"2^63 functions", func(b []byte) { b[15] = 0x80 }},
		{"names behind the end", func(b []byte) { b[8+3*8+3] = 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, f := tiny()
			tt.lie(b)
			if _, err := Open(f, bytes.NewReader(b), int64(len(b))); err == nil {
				t.Error("the table was taken at its word")
			}
		})
	}
}

func TestATableWithoutEndEnds(t *testing.T) {
	b := bytes.Repeat([]byte{0x80}, 3<<20)
	table := &Table{pclntab: elf.Range{Size: uint64(len(b))}, quantum: 1}
	if _, err := table.value(bytes.NewReader(b), 1, 7); !errors.Is(err, ErrFormat) {
		t.Errorf("err = %v", err)
	}
	// Pairs that never reach the address.
	b = bytes.Repeat([]byte{0x02, 0x00}, 3<<19)
	if _, err := table.value(bytes.NewReader(b), 2, 7); !errors.Is(err, ErrFormat) {
		t.Errorf("err = %v", err)
	}
}

func TestPrinted(t *testing.T) {
	for in, want := range map[string]string{
		"main.main": "main.main", "a.(*q[go.shape.int]).put": "a.(*q[...]).put",
		"a.f[go.shape.struct { x []int }]": "a.f[...]", "a]b[": "a]b[",
	} {
		if got := printed(in); got != want {
			t.Errorf("printed(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	b, headers := tiny()
	f.Add(b, uint64(0x1010))
	f.Fuzz(func(t *testing.T, raw []byte, pc uint64) {
		sections := append([]elf.Section(nil), headers.Sections...)
		sections[0].Size = uint64(len(raw))
		sections = append(sections, elf.Section{Name: ".go.module", Type: 1, Size: uint64(len(raw))}, elf.Section{Type: shtRela, Addr: 1, Size: uint64(len(raw))})
		file := &elf.File{Sections: sections, Segments: []elf.Segment{{Type: 1, Flags: 1, VAddr: 0x1000, FileSize: uint64(len(raw))}}}
		table, err := Open(file, bytes.NewReader(raw), int64(len(raw)))
		if err != nil || table == nil {
			return
		}
		for _, at := range []uint64{pc, table.text, table.text + 16} {
			if got, ok, err := table.Lookup(bytes.NewReader(raw), at); ok && (err != nil || len(got.Lines) == 0) {
				t.Errorf("Lookup(%#x) = %+v, %v", at, got, err)
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	table, f := self(b)
	pc := uint64(reflect.ValueOf(TestPrinted).Pointer()) + 40
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := table.Lookup(f, pc); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
