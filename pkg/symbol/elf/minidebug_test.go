// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// pack compresses with the program that distributions use.
func pack(t testing.TB, data []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "xz", append(args, "-c")...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUnpackXZ(t *testing.T) {
	data := bytes.Repeat([]byte("symbol table, "), 20_000)
	packed := pack(t, data)
	dictionary := bytes.Clone(packed)
	dictionary[12+4] = 40 // 4 GiB less one, in the first block's header
	for _, tt := range []struct {
		name  string
		in    []byte
		limit int
		err   error
	}{
		{"one block", packed, len(data), nil},
		{"the checksum that xz takes for large files", pack(t, data, "--check=sha256"), len(data), nil},
		{"several blocks", pack(t, data, "--block-size=65536"), len(data), nil},
		{"the largest dictionary that xz makes", pack(t, data, "-9e"), len(data), nil},
		{"a header that asks for a dictionary of 4 GiB gets what the data needs", dictionary, len(data), nil},
		{"incompressible", pack(t, []byte{1}), 16, nil},
		{"more than allowed", packed, len(data) - 1, ErrTooLarge},
		{"cut", packed[:len(packed)/2], len(data), errXZ},
		{"a filter for x86 code in front", pack(t, data, "--x86", "--lzma2"), len(data), errXZ},
		{"not xz", []byte("\x1f\x8b............................"), 100, errXZ},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := unpackXZ(tt.in, tt.limit)
			if !errors.Is(err, tt.err) {
				t.Fatalf("err = %v, want %v", err, tt.err)
			}
			if err == nil && len(got) > 1 && !bytes.Equal(got, data) {
				t.Errorf("unpacked %d bytes, not those packed", len(got))
			}
		})
	}
}

func FuzzUnpackXZ(f *testing.F) {
	f.Add(pack(f, []byte(strings.Repeat("abc", 1000))))
	f.Add(pack(f, []byte(strings.Repeat("abc", 1000)), "--block-size=512"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := unpackXZ(raw, 1<<16); err == nil && len(b) > 1<<16 {
			t.Errorf("%d bytes", len(b))
		}
	})
}
