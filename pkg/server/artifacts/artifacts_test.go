// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *Store {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Dir, cfg.Spare = dir, 0
	s, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func idOf(data []byte) ID {
	sum := sha256.Sum256(data)
	return ID{Capture: "c", Name: "n.f", Size: int64(len(data)), SHA256: sum[:], ContentType: "text/plain"}
}

func begin(t *testing.T, s *Store, id ID) *Upload {
	t.Helper()
	u, err := s.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func write(t *testing.T, u *Upload, data []byte) {
	t.Helper()
	if err := u.Write(u.Offset(), data, crc32.Checksum(data, castagnoli)); err != nil {
		t.Fatal(err)
	}
}

func TestACutUploadGoesOnAfterARestart(t *testing.T) {
	dir, data := t.TempDir(), bytes.Repeat([]byte("0123456789"), 1000)
	s := open(t, dir)
	u := begin(t, s, idOf(data))
	write(t, u, data[:6000])
	u.Close()

	s = open(t, dir)
	u = begin(t, s, idOf(data))
	if u.Offset() != 6000 {
		t.Fatalf("goes on at %d, want 6000", u.Offset())
	}
	write(t, u, data[6000:])
	if _, err := u.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.Close()

	r, info, err := s.Read(t.Context(), "c", "n.f")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) || info.ContentType != "text/plain" {
		t.Errorf("read %d bytes as %q, %v", len(got), info.ContentType, err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "partial")); len(left) != 0 {
		t.Errorf("%d partial files are left", len(left))
	}
	if err := s.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read(t.Context(), "c", "n.f"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after Delete: %v", err)
	}
}

func TestAnUploadThatIsWrongIsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	data := []byte("what was announced")
	u := begin(t, s, idOf(data))
	defer func() { u.Close() }()
	if err := u.Write(0, data, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a wrong checksum: %v", err)
	}
	if err := u.Write(3, data, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("a gap: %v", err)
	}
	if _, err := u.Commit(t.Context()); !errors.Is(err, ErrInvalid) {
		t.Errorf("a commit too early: %v", err)
	}
	write(t, u, []byte("what was not, same"))
	if err := u.Write(u.Offset(), []byte("x"), 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("more than was announced: %v", err)
	}
	if _, err := u.Commit(t.Context()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("other bytes than announced: %v", err)
	}
	u.Close()
	if u = begin(t, s, idOf(data)); u.Offset() != 0 {
		t.Errorf("after wrong bytes it goes on at %d, want 0", u.Offset())
	}
	for name, edit := range map[string]func(*ID){
		"a path":         func(id *ID) { id.Name = "../x" },
		"a hidden file":  func(id *ID) { id.Name = ".x" },
		"a capture path": func(id *ID) { id.Capture = "../c" },
		"no hash":        func(id *ID) { id.SHA256 = nil },
		"five gigabytes": func(id *ID) { id.Size = 5 << 30 },
	} {
		id := idOf(data)
		edit(&id)
		if _, err := s.Begin(t.Context(), id); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheNewestUploadHasIt(t *testing.T) {
	s := open(t, t.TempDir())
	data := []byte("data")
	old := begin(t, s, idOf(data))
	write(t, old, data[:2])
	go func() { <-old.Displaced(); old.Close() }() // as its stream does
	fresh := begin(t, s, idOf(data))
	defer fresh.Close()
	if fresh.Offset() != 2 {
		t.Errorf("goes on at %d, want 2", fresh.Offset())
	}
}

func TestAnAbandonedUploadIsRemoved(t *testing.T) {
	s := open(t, t.TempDir())
	data := []byte("data")
	u := begin(t, s, idOf(data))
	write(t, u, data[:2])
	s.sweep(time.Now().Add(2 * partialAge))
	if _, err := os.Stat(u.path); err != nil {
		t.Errorf("an open one is gone: %v", err)
	}
	u.Close()
	s.sweep(time.Now().Add(partialAge / 2))
	if _, err := os.Stat(u.path); err != nil {
		t.Errorf("a young one is gone: %v", err)
	}
	s.sweep(time.Now().Add(2 * partialAge))
	if _, err := os.Stat(u.path); !os.IsNotExist(err) {
		t.Errorf("an old one is there: %v", err)
	}
}
