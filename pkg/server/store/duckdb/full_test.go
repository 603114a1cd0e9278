// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// smallDisk mounts a file system of size bytes. Who may not mount skips.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		err = fmt.Errorf("%w: mount a small disk: %w", collector.ErrUnavailable, err)
		if errors.Is(err, unix.EPERM) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all the room that is left on a disk and answers how to give it back.
func fill(t *testing.T, dir string) (release func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// bulky makes a batch that takes a while to write: many stacks, none like another batch's.
func bulky(sequence uint64) store.Batch {
	b := store.Batch{Node: "a", BootID: "boot", Sequence: sequence}
	b.Start = crashStart.Add(time.Duration(sequence) * time.Second)
	b.End = b.Start.Add(time.Second)
	for i := range 2000 {
		leaf := &profile.Location{Lines: []profile.Line{{Function: fmt.Sprintf("a_function_with_a_long_name_%d_%d", sequence, i)}}}
		b.Records = append(b.Records, profile.Record{Stack: profile.Stack{{Location: leaf}}, Values: profile.Values{profile.CPU: 1}})
	}
	return b
}

// wantHeld checks that the store holds exactly n bulky batches, in all tables.
func wantHeld(t *testing.T, s *Store, n int) {
	t.Helper()
	sel := store.Selection{From: crashStart, To: crashStart.Add(24 * time.Hour)}
	w, err := s.Stacks(t.Context(), profile.CPU, sel, 10_000_000)
	if err != nil {
		t.Errorf("stacks: %v", err)
		return
	}
	if len(w.Stacks) != n*2000 {
		t.Errorf("%d stacks are held, want %d", len(w.Stacks), n*2000)
	}
	if sequence, err := s.DurableSequence(t.Context(), "a", "boot"); err != nil || sequence != uint64(n) {
		t.Errorf("durable sequence = %d, %v, want %d", sequence, err, n)
	}
}

func TestADiskThatFillsUpRefusesAndGoesOnLater(t *testing.T) {
	dir := smallDisk(t, 24<<20)
	s := open(t, testConfig(dir))
	held, err := 0, error(nil)
	for err == nil && held < 1000 {
		if err = s.Append(t.Context(), bulky(uint64(held+1))); err == nil {
			held++
		}
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatalf("err = %v, want ErrFull", err)
	}
	if held == 0 {
		t.Fatal("nothing was stored at all")
	}
	t.Logf("%d batches fit: %v", held, err)
	wantHeld(t, s, held)

	reopen := func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, testConfig(dir)) // it is closed with the whole test
	}
	t.Run("what was there is still there for who opens it again on the full disk", func(t *testing.T) {
		reopen()
		wantHeld(t, s, held)
		if err := s.Append(t.Context(), bulky(uint64(held+1))); !errors.Is(err, store.ErrFull) {
			t.Fatalf("err = %v, want ErrFull", err)
		}
		wantHeld(t, s, held)
	})
	t.Run("it goes on when there is room again", func(t *testing.T) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=128m"); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			held++
			if err := s.Append(t.Context(), bulky(uint64(held))); err != nil {
				t.Fatal(err)
			}
		}
		wantHeld(t, s, held)
		reopen()
		wantHeld(t, s, held)
	})
}

func TestAStoreStartsOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, 16<<20)
	release := fill(t, dir)
	s := open(t, testConfig(dir))
	if err := s.Append(t.Context(), bulky(1)); !errors.Is(err, store.ErrFull) {
		t.Fatalf("err = %v, want ErrFull", err)
	}
	wantHeld(t, s, 0)
	release()
	if err := s.Append(t.Context(), bulky(1)); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, s, 1)
}

func TestFreeSpaceBelowTheFloorRefuses(t *testing.T) {
	dir := smallDisk(t, 64<<20)
	cfg := testConfig(dir)
	cfg.FreeBytes = 32 << 20
	s := open(t, cfg)
	if err := s.Append(t.Context(), bulky(1)); err != nil {
		t.Fatal(err)
	}
	release := fill(t, dir)
	if err := s.Append(t.Context(), bulky(2)); !errors.Is(err, store.ErrFull) {
		t.Fatalf("err = %v, want ErrFull", err)
	}
	wantHeld(t, s, 1)
	release()
	if err := s.Append(t.Context(), bulky(2)); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, s, 2)
}
