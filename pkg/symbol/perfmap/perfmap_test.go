// SPDX-License-Identifier: Apache-2.0

package perfmap

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func update(t *testing.T, m *Map, text string) *strings.Reader {
	t.Helper()
	r := strings.NewReader(text)
	if err := m.Update(r, r.Size(), 1000); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLookup(t *testing.T) {
	var m Map
	text := strings.Join([]string{
		"1000 100 LazyCompile:~step /app/a b.js:7",
		"0x2000 0x80 void Foo::bar(int)",
		"",
		"3000 nothing",
		"4000 0 empty",
		"5000 ffffffffff larger than any function",
		"ffffffffffffff00 200 over the end of memory",
		"6000 10 ",
		"1040 20 replaced step's middle",
		"7000 10 caf\xe9",
		"",
	}, "\n")
	r := update(t, &m, text)
	for _, tt := range []struct {
		name string
		at   uint64
		want string
	}{
		{"the first byte", 0x1000, "LazyCompile:~step /app/a b.js:7"},
		{"behind the end", 0x1100, ""},
		{"numbers with a prefix", 0x207f, "void Foo::bar(int)"},
		{"a later line wins", 0x1050, "replaced step's middle"},
		{"where the later one ends the earlier one goes on", 0x1060, "LazyCompile:~step /app/a b.js:7"},
		{"a function larger than any", 0x5010, ""},
		{"a name of nothing", 0x6001, ""},
		{"bytes that are no text", 0x7000, "caf\uFFFD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok, err := m.Lookup(r, tt.at)
			if err != nil || got.Name != tt.want || ok != (tt.want != "") {
				t.Errorf("got %+v, %v, %v, want %q", got, ok, err, tt.want)
			}
		})
	}
}

func TestUpdateReadsWhatWasAppended(t *testing.T) {
	var m Map
	text := "1000 10 a\n2000 10 half"
	update(t, &m, text)
	if m.Len() != 1 {
		t.Fatalf("%d functions, want the one whose line is whole", m.Len())
	}
	text += " a line\n800 10 earlier\n"
	r := update(t, &m, text)
	for at, want := range map[uint64]string{0x1000: "a", 0x2000: "half a line", 0x800: "earlier"} {
		if got, _, err := m.Lookup(r, at); got.Name != want || err != nil {
			t.Errorf("%#x is %q, %v, want %q", at, got.Name, err, want)
		}
	}
	r = update(t, &m, "9000 10 anew\n")
	if got, _, err := m.Lookup(r, 0x9000); got.Name != "anew" || m.Len() != 1 || err != nil {
		t.Errorf("after the file was begun anew: %+v, %d, %v", got, m.Len(), err)
	}
}

func TestTooManyFunctions(t *testing.T) {
	var text strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&text, "%x 10 f%d\n", 0x1000+i*0x10, i)
	}
	var m Map
	r := strings.NewReader(text.String())
	if err := m.Update(r, r.Size(), 500); !errors.Is(err, ErrTooLarge) {
		t.Errorf("err = %v", err)
	}
	if got, ok, err := m.Lookup(r, 0x1000+499*0x10); m.Len() != 500 || !ok || got.Name != "f499" || err != nil {
		t.Errorf("%d functions, the last %+v, %v", m.Len(), got, err)
	}
}

func TestALineThatNeverEnds(t *testing.T) {
	var m Map
	r := update(t, &m, strings.Repeat("x", 1<<20)+"\n1000 10 after\n")
	if got, _, err := m.Lookup(r, 0x1000); got.Name != "after" || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte("1000 100 a b\n0x1040 0x20 c\n"), uint64(0x1050), 9)
	f.Fuzz(func(t *testing.T, raw []byte, at uint64, cut int) {
		var m Map
		r := strings.NewReader(string(raw))
		for _, size := range []int{min(max(cut, 0), len(raw)), len(raw)} {
			_ = m.Update(r, int64(size), 100)
		}
		if m.Len() > 100 {
			t.Errorf("%d functions", m.Len())
		}
		if s, ok, _ := m.Lookup(r, at); ok && (s.Start > at || !utf8.ValidString(s.Name)) {
			t.Errorf("Lookup(%#x) = %+v", at, s)
		}
	})
}
