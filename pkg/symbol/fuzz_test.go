// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// FuzzLoad takes a whole file through everything that is read of files.
func FuzzLoad(f *testing.F) {
	if image, err := readVDSO(); err == nil {
		f.Add(image, uint64(0x700))
	}
	dir := f.TempDir()
	for name, flags := range map[string][]string{"plain": nil, "exported": {"-s", "-rdynamic"}, "fixed": {"-no-pie"}} {
		path := filepath.Join(dir, name)
		compile(f, path, "shown", flags...)
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint64(0x1145))
	}
	files := &files{host: dir}
	f.Fuzz(func(t *testing.T, raw []byte, off uint64) {
		o, err := loadVDSO(raw, 1000)
		if err != nil {
			return
		}
		if o.bytes > int64(len(raw))+64<<10 {
			t.Errorf("%d bytes held of a file of %d", o.bytes, len(raw))
		}
		for _, at := range []uint64{off, off + 1, 0} {
			if found, ok, err := o.lookup(files, opener{}, at); ok && (err != nil || !utf8.ValidString(found.lines[0].Function)) {
				t.Errorf("found %+v, %v", found, err)
			}
		}
	})
}

func FuzzPretty(f *testing.F) {
	for _, name := range []string{"main", "_ZN5fleet4RingIfE4pushEf", "_RNvC6_123foo3bar", "_ZN4core3fmt5write17h0123456789abcdefE", "_ZZZZZ", "_Z1fIiiiiiiiiiiiiEvT_"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got := pretty(name); len(got) > max(len(name), 1<<(maxPretty+1)) {
			t.Errorf("%d characters of %d", len(got), len(name))
		}
	})
}
