// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSeenRemembersAcrossRestarts(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string // "" is no file
		add  string
		want bool
	}{
		{"no file", "", "a", false},
		{"an id of an earlier life", "a\nb\n", "a", true},
		{"an id that is new", "a\nb\n", "c", false},
		{"a line cut short is no id", "a\nlong-i", "long-i", false},
		{"rubbish between the ids", "a\n\x00\xff \n/etc\nb\n", "b", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "seen")
			if tt.file != "" {
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for life := range 2 {
				s, err := openSeen(path)
				if err != nil {
					t.Fatal(err)
				}
				again, err := s.add(tt.add)
				if err != nil {
					t.Fatal(err)
				}
				if want := tt.want || life > 0; again != want {
					t.Errorf("life %d: known %v, want %v", life, again, want)
				}
				s.close()
			}
		})
	}
}

func TestSeenIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	var old strings.Builder
	for i := range 3 * maxSeen {
		fmt.Fprintf(&old, "id-%d\n", i)
	}
	if err := os.WriteFile(path, []byte(old.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openSeen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for i := range 10 {
		if again, err := s.add(fmt.Sprintf("new-%d", i)); again || err != nil {
			t.Fatalf("add = %v, %v", again, err)
		}
	}
	if len(s.order) != maxSeen || len(s.known) != maxSeen {
		t.Errorf("%d ids in order and %d known, want %d", len(s.order), len(s.known), maxSeen)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), "\n"); n > 2*maxSeen {
		t.Errorf("the file has %d lines", n)
	}
	if again, _ := s.add(fmt.Sprintf("id-%d", 3*maxSeen-1)); !again {
		t.Error("the newest of the old ids is forgotten")
	}
}

func FuzzReadSeen(f *testing.F) {
	f.Add("a\nb\n")
	f.Add("\n\n\x00\nlast")
	f.Fuzz(func(t *testing.T, raw string) {
		ids, err := readSeen(strings.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if !validOrderID(id) || !strings.Contains(raw, id+"\n") {
				t.Errorf("%q was read", id)
			}
		}
	})
}

func FuzzWhatAnswered(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 "), true)
	f.Add([]byte{0, 0, 6, 4, 0, 0, 0, 0, 0}, true)
	f.Add([]byte{0x15, 3, 1, 0, 2}, false)
	f.Fuzz(func(t *testing.T, first []byte, encrypted bool) {
		what := whatAnswered(first, true, encrypted)
		if what == "" && len(first) > 0 && !isTLS(first) && !isSettingsFrame(first) {
			t.Errorf("%q is taken for what was expected", first)
		}
	})
}
