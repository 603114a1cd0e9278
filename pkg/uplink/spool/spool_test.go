// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.Floor = nil
	return cfg
}

// ledger adds up what a spool says is lost.
type ledger map[string]uint64

func (l ledger) lose(place string, n uint64) { l[place] += n }

func mustOpen(t testing.TB, dir, boot string, cfg Config, lost ledger) *Spool {
	t.Helper()
	s, err := Open(dir, boot, cfg, lost.lose)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, s *Spool, samples uint64, size int) uint64 {
	t.Helper()
	sequence, err := s.Append(samples, func(n uint64) ([]byte, error) {
		return append(fmt.Appendf(nil, "batch %d ", n), make([]byte, size)...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sequence
}

// held reads all that a spool holds: "boot:sequence ...".
func held(s *Spool) string {
	var all []string
	for at := Position(0); ; {
		b, next, ok := s.Read(at)
		if !ok {
			return strings.Join(all, " ")
		}
		all = append(all, fmt.Sprintf("%s:%d", b.BootID, b.Sequence))
		at = next
	}
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.spool"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestBatchesComeOutOldestFirstAndGoByAcknowledgement(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(t *testing.T) *Spool
	}{
		{"on disk", func(t *testing.T) *Spool { return mustOpen(t, t.TempDir(), "a", testConfig(), ledger{}) }},
		{"in memory", func(t *testing.T) *Spool {
			s, err := OpenMemory("a", testConfig(), ledger{}.lose)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.open(t)
			for range 5 {
				put(t, s, 3, 10)
			}
			if got, want := held(s), "a:1 a:2 a:3 a:4 a:5"; got != want {
				t.Fatalf("held %s, want %s", got, want)
			}
			if n := s.Ack("a", 3); n != 3 {
				t.Errorf("Ack took %d batches, want 3", n)
			}
			if n := s.Ack("other", 5); n != 0 {
				t.Errorf("Ack of another boot took %d batches", n)
			}
			if got, want := held(s), "a:4 a:5"; got != want {
				t.Errorf("held %s, want %s", got, want)
			}
			if st := s.Stats(); st.Batches != 2 || st.Samples != 6 {
				t.Errorf("stats = %+v, want 2 batches of 6 samples", st)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, s *Spool)
		boot   string
		want   string // held after one more Append
		floor  uint64
	}{
		{
			name:   "unsent batches stay and numbers go on",
			before: func(t *testing.T, s *Spool) { put(t, s, 1, 10); put(t, s, 1, 10) },
			boot:   "a", want: "a:1 a:2 a:3",
		},
		{
			name:   "acknowledged batches do not come back",
			before: func(t *testing.T, s *Spool) { put(t, s, 1, 10); put(t, s, 1, 10); s.Ack("a", 1) },
			boot:   "a", want: "a:2 a:3",
		},
		{
			name:   "numbers go on though every batch was acknowledged",
			before: func(t *testing.T, s *Spool) { put(t, s, 1, 10); put(t, s, 1, 10); s.Ack("a", 2) },
			boot:   "a", want: "a:3", floor: 1000,
		},
		{
			name:   "a new boot counts anew and the old batches keep their names",
			before: func(t *testing.T, s *Spool) { put(t, s, 1, 10); put(t, s, 1, 10); s.Ack("a", 1) },
			boot:   "b", want: "a:2 b:1",
		},
		{
			name:   "a folder that knows nothing of the boot goes on from the floor",
			before: func(t *testing.T, s *Spool) { put(t, s, 1, 10) },
			boot:   "b", want: "a:1 b:1001", floor: 1000,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, lost := t.TempDir(), ledger{}
			s := mustOpen(t, dir, "a", testConfig(), lost)
			tt.before(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			cfg := testConfig()
			cfg.Floor = func() uint64 { return tt.floor }
			s = mustOpen(t, dir, tt.boot, cfg, lost)
			put(t, s, 1, 10)
			if got := held(s); got != tt.want {
				t.Errorf("held %s, want %s", got, tt.want)
			}
			if len(lost) > 0 {
				t.Errorf("lost %v", lost)
			}
		})
	}
}

func TestAnOlderBootIsAcknowledgedBeforeTheNewOne(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, "a", testConfig(), ledger{})
	put(t, s, 1, 10)
	s.Close()
	s = mustOpen(t, dir, "b", testConfig(), ledger{})
	put(t, s, 1, 10)
	if n := s.Ack("b", 1); n != 0 {
		t.Errorf("Ack took %d batches out of their turn", n)
	}
	if n := s.Ack("a", 1); n != 1 {
		t.Errorf("Ack of the older boot took %d batches, want 1", n)
	}
	if files := segments(t, dir); len(files) != 1 {
		t.Errorf("the older boot's segment is still there: %v", files)
	}
	if n := s.Ack("b", 1); n != 1 {
		t.Errorf("Ack of the new boot took %d batches, want 1", n)
	}
}

func TestBounds(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, tt := range []struct {
		name   string
		change func(*Config)
		step   time.Duration // between batches
		n      int
		size   int
		check  func(t *testing.T, s *Spool)
	}{
		{
			name: "bytes", n: 100, size: 40 << 10,
			change: func(c *Config) { c.Bytes = minBytes },
			check: func(t *testing.T, s *Spool) {
				if st := s.Stats(); st.DiskBytes > minBytes || st.Batches < 20 {
					t.Errorf("%d batches take %d bytes of %d", st.Batches, st.DiskBytes, minBytes)
				}
			},
		},
		{
			name: "age", n: 100, size: 10, step: time.Minute,
			change: func(c *Config) { c.Age = time.Hour },
			check: func(t *testing.T, s *Spool) {
				if st := s.Stats(); st.Batches != 61 {
					t.Errorf("%d batches are within the hour, want 61", st.Batches)
				}
			},
		},
		{
			name: "number", n: 100, size: 10,
			change: func(c *Config) { c.Batches = 7 },
			check: func(t *testing.T, s *Spool) {
				if got, want := held(s), "a:94 a:95 a:96 a:97 a:98 a:99 a:100"; got != want {
					t.Errorf("held %s, want %s", got, want)
				}
			},
		},
	} {
		t.Run("the oldest go first and are counted in samples: "+tt.name, func(t *testing.T) {
			cfg, lost, dir := testConfig(), ledger{}, t.TempDir()
			clock := now
			cfg.Now = func() time.Time { return clock }
			tt.change(&cfg)
			s := mustOpen(t, dir, "a", cfg, lost)
			for range tt.n {
				put(t, s, 5, tt.size)
				clock = clock.Add(tt.step)
			}
			clock = clock.Add(-tt.step)
			tt.check(t, s)

			st := s.Stats()
			if got := st.Samples + st.DroppedSamples; got != uint64(5*tt.n) {
				t.Errorf("%d samples held and %d dropped, of %d", st.Samples, st.DroppedSamples, 5*tt.n)
			}
			if uint64(st.Batches)+st.DroppedBatches != uint64(tt.n) {
				t.Errorf("%d batches held and %d dropped, of %d", st.Batches, st.DroppedBatches, tt.n)
			}
			if lost["spool"] != st.DroppedSamples {
				t.Errorf("told %d samples lost, counted %d", lost["spool"], st.DroppedSamples)
			}
			onDisk := int64(0)
			for _, name := range segments(t, dir) {
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				onDisk += info.Size()
			}
			if onDisk != st.DiskBytes {
				t.Errorf("the folder has %d bytes, stats say %d", onDisk, st.DiskBytes)
			}
		})
	}
}

func TestABatchTooLargeForTheSpoolIsRefusedAndCostsNoOther(t *testing.T) {
	cfg, lost := testConfig(), ledger{}
	cfg.Bytes = minBytes
	s := mustOpen(t, t.TempDir(), "a", cfg, lost)
	put(t, s, 1, 10)
	_, err := s.Append(1, func(uint64) ([]byte, error) { return make([]byte, minBytes/2), nil })
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("Append = %v, want ErrTooLarge", err)
	}
	put(t, s, 1, 10)
	if got, want := held(s), "a:1 a:2"; got != want {
		t.Errorf("held %s, want %s", got, want)
	}
}

func TestTwoSpoolsDoNotShareAFolder(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, "a", testConfig(), ledger{})
	if _, err := Open(dir, "a", testConfig(), ledger{}.lose); !errors.Is(err, ErrLocked) {
		t.Errorf("second Open = %v, want ErrLocked", err)
	}
	s.Close()
	mustOpen(t, dir, "a", testConfig(), ledger{})
}

func TestMemoryThatIsClosedCountsWhatItHeld(t *testing.T) {
	lost := ledger{}
	s, err := OpenMemory("a", testConfig(), lost.lose)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, 7, 10)
	put(t, s, 8, 10)
	s.Ack("a", 1)
	s.Close()
	if lost["spool"] != 8 {
		t.Errorf("lost %d samples, want 8", lost["spool"])
	}
}

func TestDamage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		hurt   func(raw []byte) []byte
		held   string // after one more Append
		lost   uint64
		damage uint64
	}{
		{
			name: "a tail cut short is passed over and its number not used again",
			hurt: func(raw []byte) []byte { return raw[:len(raw)-1] },
			held: "a:1 a:2 a:4", lost: 0,
		},
		{
			name: "a damaged payload costs its samples and no other batch",
			hurt: func(raw []byte) []byte { raw[headerBytes+headerBytes+3] ^= 1; return raw },
			held: "a:2 a:3 a:4", lost: 5, damage: 1,
		},
		{
			name: "a damaged header costs one batch of unknown size and no number is used again",
			hurt: func(raw []byte) []byte { raw[headerBytes+20] ^= 1; return raw },
			held: "a:2 a:3 a:1001", lost: 1, damage: 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, lost := t.TempDir(), ledger{}
			s := mustOpen(t, dir, "a", testConfig(), lost)
			for range 3 {
				put(t, s, 5, 100)
			}
			s.Close()
			name := segments(t, dir)[0]
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, tt.hurt(raw), 0o600); err != nil {
				t.Fatal(err)
			}

			cfg := testConfig()
			cfg.Floor = func() uint64 { return 1000 }
			s = mustOpen(t, dir, "a", cfg, lost)
			put(t, s, 5, 100)
			if got := held(s); got != tt.held {
				t.Errorf("held %s, want %s", got, tt.held)
			}
			if lost["spool"] != tt.lost || s.Stats().Damaged != tt.damage {
				t.Errorf("lost %d, damaged %d; want %d, %d", lost["spool"], s.Stats().Damaged, tt.lost, tt.damage)
			}
			s.Ack("a", 2000)
			if st := s.Stats(); st.Batches != 0 {
				t.Errorf("a damaged batch holds up the others: %+v", st)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, bb := range []struct {
		name string
		open func(b *testing.B) *Spool
	}{
		{"disk", func(b *testing.B) *Spool { return mustOpen(b, b.TempDir(), "a", testConfig(), ledger{}) }},
		{"memory", func(b *testing.B) *Spool {
			s, err := OpenMemory("a", testConfig(), ledger{}.lose)
			if err != nil {
				b.Fatal(err)
			}
			return s
		}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := bb.open(b)
			payload := make([]byte, 64<<10)
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				sequence, err := s.Append(1, func(uint64) ([]byte, error) { return payload, nil })
				if err != nil {
					b.Fatal(err)
				}
				s.Ack("a", sequence)
			}
			b.ReportMetric(headerBytes, "overhead-B/batch")
		})
	}
}
