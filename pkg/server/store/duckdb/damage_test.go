// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// twoHours makes a store of two partitions, closed; the first holds bulky(1), the second a single stack.
func twoHours(t *testing.T) (dir, first string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, testConfig(dir))
	later := crashBatch(2)
	later.Start, later.End = crashStart.Add(time.Hour), crashStart.Add(time.Hour+time.Second)
	for _, b := range []store.Batch{bulky(1), later} {
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	first = s.snapshot()[0].path
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, first
}

func overwrite(offset, length int64) func(path string) error {
	return func(path string) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		for i := range length {
			if _, err := f.WriteAt([]byte{0xa5}, offset+i); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestADamagedPartitionIsSetAsideAndTheRestServed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(path string) error
	}{
		{"cut to half", func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()/2)
		}},
		{"cut within its header", func(path string) error { return os.Truncate(path, 100) }},
		{"overwritten at its start", overwrite(0, 4096)},
		{"overwritten in its headers", overwrite(4096, 8192)},
		{"overwritten in its data", overwrite(12288, 1<<20)},
		{"text", func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("no database\n", 4000)), 0o644)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, first := twoHours(t)
			if err := tt.damage(first); err != nil {
				t.Fatal(err)
			}
			s := open(t, testConfig(dir))
			sel := store.Selection{From: crashStart, To: crashStart.Add(24 * time.Hour)}
			w, err := s.Stacks(t.Context(), profile.CPU, sel, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			if len(w.Stacks) != 50 {
				t.Errorf("%d stacks are served, want the 50 of the partition that is whole", len(w.Stacks))
			}
			if _, err := os.Stat(first + corruptExt); err != nil {
				t.Errorf("the damaged file was not set aside: %v", err)
			}
			// Sent again, the batch is stored again.
			if err := s.Append(t.Context(), bulky(1)); err != nil {
				t.Fatal(err)
			}
			if w, err = s.Stacks(t.Context(), profile.CPU, sel, 10_000); err != nil || len(w.Stacks) != 2050 {
				t.Errorf("%d stacks after sending again, %v, want 2050", len(w.Stacks), err)
			}
			if _, err := s.Retain(t.Context(), store.Retention{Age: time.Hour}, crashStart.AddDate(1, 0, 0)); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.duckdb*")); len(left) > 0 {
				t.Errorf("retention left %v", left)
			}
		})
	}
}

func TestAnEmptyFileIsAPartitionThatWasNeverMade(t *testing.T) {
	dir, _ := twoHours(t)
	unfinished := filepath.Join(dir, "20260301T15-000"+partitionExt)
	if err := os.WriteFile(unfinished, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, testConfig(dir))
	if n := len(s.snapshot()); n != 2 {
		t.Errorf("%d partitions, want 2", n)
	}
	if _, err := os.Stat(unfinished); err == nil {
		t.Error("the empty file is still there")
	}
}

func TestTwoProcessesDoNotShareAFolder(t *testing.T) {
	dir := t.TempDir()
	open(t, testConfig(dir))
	_, err := Open(t.Context(), testConfig(dir), nil)
	if err == nil || !strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("err = %v", err)
	}
}

func TestALargePartitionIsFollowedByAnotherOfTheHour(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.PartitionBytes = 1 << 20
	s := open(t, cfg)
	for i := range 12 {
		if err := s.Append(t.Context(), bulky(uint64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.snapshot()); n < 2 {
		t.Errorf("%d partitions, want several", n)
	}
	wantHeld(t, s, 12)
	if err := s.Append(t.Context(), bulky(3)); err != nil { // held by an earlier one
		t.Fatal(err)
	}
	wantHeld(t, s, 12)
}

func TestRememberingNoIdentifiersRepeatsRowsAndNothingElse(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.DictionaryIDs, cfg.DictionaryKeep = 8, 1
	s := open(t, cfg)
	for i := range 5 {
		if err := s.Append(t.Context(), crashBatch(uint64(i*9+1))); err != nil { // every ninth has the same stacks
			t.Fatal(err)
		}
	}
	sel := store.Selection{From: crashStart, To: crashStart.Add(24 * time.Hour)}
	for range 2 {
		w, err := s.Stacks(t.Context(), profile.CPU, sel, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Stacks) != 50 || w.Stacks[0].Value != 5 || len(w.Stacks[0].Stack[0].Location.Lines) != 1 {
			t.Errorf("%d stacks, the first %d times with %d lines, want 50, 5 and 1", len(w.Stacks), w.Stacks[0].Value, len(w.Stacks[0].Stack[0].Location.Lines))
		}
	}
}

func TestIdentifiersAreStable(t *testing.T) {
	var h hasher
	l := &profile.Location{Realm: profile.RealmUser, Mapping: &profile.Mapping{Path: "/bin/x", BuildID: "ab"}, Offset: 16,
		Lines: []profile.Line{{Function: "f", File: "f.c", Number: 3}}}
	got := fmt.Sprintf("%016x %016x %016x %016x",
		h.frame(l), h.stack([]uint64{1, 2}), h.subject(subject{PID: 1, Comm: "x"}), h.series("m", profile.Labels{{Name: "a", Value: "b"}}))
	const want = "8f3a8e330c9414d3 4d242501e2290155 b6b6c609296cf529 0ff5c7d0bc304dc9"
	if got != want {
		t.Errorf("identifiers are %s, were %s: files written by earlier releases no longer fit", got, want)
	}
}

func TestEveryTypeHasANumberOfItsOwn(t *testing.T) {
	taken := make(map[uint8]profile.Type)
	for typ := range profile.Type(profile.NumTypes) {
		n, ok := typeNumbers[typ]
		if other, twice := taken[n]; !ok || twice {
			t.Errorf("%v has number %d, as %v", typ, n, other)
		}
		taken[n] = typ
	}
}
