// SPDX-License-Identifier: Apache-2.0

package kallsyms

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

const small = `ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t do_one
ffffffff81000200 T __x64_sys_read
ffffffff81000200 t __do_sys_read
ffffffff81000300 D jiffies
ffffffff82000000 t far
ffffffffc0001000 t nft_do	[nf_tables]
ffffffffc0001080 T nft_more	[nf_tables]
ffffffffc0100000 t bpf_prog_6deef7357e7b4530_oncpu	[bpf]
`

func TestLookup(t *testing.T) {
	table, err := Parse(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		at   uint64
		want Symbol
	}{
		{"the shorter of two names at the start of the kernel", 0xffffffff81000000, Symbol{"_text", "", 0xffffffff81000000, 0}},
		{"the last byte before the next function", 0xffffffff810001ff, Symbol{"do_one", "", 0xffffffff81000100, 0x100}},
		{"an exported name before a local one", 0xffffffff81000200, Symbol{"__x64_sys_read", "", 0xffffffff81000200, 0x200}},
		{"data does not end a function", 0xffffffff81000310, Symbol{"__x64_sys_read", "", 0xffffffff81000200, 0x200}},
		{"far behind a function there is nothing", 0xffffffff81800000, Symbol{}},
		{"a module's offsets count from its own text", 0xffffffffc0001090, Symbol{"nft_more", "nf_tables", 0xffffffffc0001080, 0x80}},
		{"a BPF program stands for itself", 0xffffffffc0100010, Symbol{"bpf_prog_6deef7357e7b4530_oncpu", "bpf", 0xffffffffc0100000, 0}},
		{"a user address", 0x400000, Symbol{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := table.Lookup(tt.at)
			if got != tt.want || ok != (tt.want.Name != "") {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, err string }{
		{"addresses that are all zero", strings.ReplaceAll("0 T _text\n0 t f\n", "0 ", "0000000000000000 "), "hides its addresses"},
		{"a line without kind", "ffffffff81000000\n", "line 1: malformed"},
		{"more than 64 bits", "1ffffffff81000000 T x\n", "malformed"},
		{"a line without end", strings.Repeat("f", 2*maxLine), "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(tt.in)); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("err = %v, want one saying %q", err, tt.err)
			}
		})
	}
}

func TestThisKernel(t *testing.T) {
	raw, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	table, err := Parse(bytes.NewReader(raw))
	if errors.Is(err, ErrHidden) {
		if Visible(bytes.NewReader(raw)) == nil {
			t.Error("Visible says otherwise")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if table.Len() < 10_000 || table.Bytes() > 60*int64(table.Len()) {
		t.Errorf("%d functions in %d bytes", table.Len(), table.Bytes())
	}
	t.Logf("%d functions in %d bytes", table.Len(), table.Bytes())
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small), uint64(0xffffffff81000110))
	f.Fuzz(func(t *testing.T, raw []byte, at uint64) {
		_ = Visible(bytes.NewReader(raw))
		table, err := Parse(bytes.NewReader(raw))
		if err != nil {
			return
		}
		for _, at := range []uint64{at, table.base} {
			if s, ok := table.Lookup(at); ok && s.Start > at {
				t.Errorf("Lookup(%#x) = %+v", at, s)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		f, err := os.Open("/proc/kallsyms")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Parse(f); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
