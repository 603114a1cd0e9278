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
		want sighting
	}{
		{"no file", "", "a", never},
		{"an id of an earlier life", "a\nb\n", "a", earlierLife},
		{"an id that is new", "a\nb\n", "c", never},
		{"a line cut short is no id", "a\nlong-i", "long-i", never},
		{"rubbish between the ids", "a\n\x00\xff \n/etc\nb\n", "b", earlierLife},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "seen")
			if tt.file != "" {
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			first, second := openedSeen(t, path), tt.want
			if got := added(t, first, tt.add); got != tt.want {
				t.Errorf("seen before: %v, want %v", got, tt.want)
			}
			if second == never {
				second = thisLife
			}
			if got := added(t, first, tt.add); got != second {
				t.Errorf("seen before, the second time: %v, want %v", got, second)
			}
			first.close()
			if got := added(t, openedSeen(t, path), tt.add); got != earlierLife {
				t.Errorf("seen before, after a restart: %v, want %v", got, earlierLife)
			}
		})
	}
}

func openedSeen(t *testing.T, path string) *seen {
	t.Helper()
	s, err := openSeen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

func added(t *testing.T, s *seen, id string) sighting {
	t.Helper()
	before, err := s.add(id)
	if err != nil {
		t.Fatal(err)
	}
	return before
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
	s := openedSeen(t, path)
	for i := range 10 {
		if before := added(t, s, fmt.Sprintf("new-%d", i)); before != never {
			t.Fatalf("new-%d was seen before", i)
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
	if added(t, s, fmt.Sprintf("id-%d", 3*maxSeen-1)) != earlierLife {
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
