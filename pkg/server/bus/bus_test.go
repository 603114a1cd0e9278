// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type record struct {
	Name  string
	Count int
}

func open(t *testing.T, cfg Config) *Bus {
	t.Helper()
	if cfg.URL == "" && cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	cfg.Replicas = 1
	b, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func table(t *testing.T, b *Bus) *Table[record] {
	t.Helper()
	tab, err := OpenTable[record](t.Context(), b, "records", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestAWriteIsReadAtOnce(t *testing.T) {
	tab := table(t, open(t, Config{}))
	for i := range 100 {
		if _, err := tab.Put(t.Context(), "a", record{"a", i}); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := tab.Get("a"); got.Count != i {
			t.Fatalf("read %d after writing %d", got.Count, i)
		}
	}
}

func TestRecordsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Config{Dir: dir})
	if _, err := table(t, b).Put(t.Context(), "a", record{"a", 7}); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got, _, ok := table(t, open(t, Config{Dir: dir})).Get("a"); !ok || got.Count != 7 {
		t.Errorf("after a restart: %+v, %v", got, ok)
	}
}

func TestConcurrentChangesAllCount(t *testing.T) {
	a := open(t, Config{Listen: "127.0.0.1:0"})
	b := open(t, Config{URL: a.URL()})
	one, two := table(t, a), table(t, b)
	if _, err := one.Create(t.Context(), "n", record{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, _, ok := two.Get("n"); return ok })

	var wg sync.WaitGroup
	for _, tab := range []*Table[record]{one, two} {
		for range 4 {
			wg.Go(func() {
				for range 5 {
					if err := tab.Modify(t.Context(), "n", func(r *record) bool { r.Count++; return true }); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	waitFor(t, func() bool { r, _, _ := one.Get("n"); return r.Count == 40 })
}

func TestTheFirstWriterWins(t *testing.T) {
	tab := table(t, open(t, Config{}))
	rev, err := tab.Create(t.Context(), "a", record{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Create(t.Context(), "a", record{}); !errors.Is(err, ErrConflict) {
		t.Errorf("second Create = %v", err)
	}
	if _, err := tab.Update(t.Context(), "a", record{Count: 1}, rev); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Update(t.Context(), "a", record{Count: 2}, rev); !errors.Is(err, ErrConflict) {
		t.Errorf("Update on an old revision = %v", err)
	}
	if err := tab.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return tab.Len() == 0 })
	if err := tab.Modify(t.Context(), "a", func(*record) bool { return true }); !errors.Is(err, ErrNotFound) {
		t.Errorf("Modify of nothing = %v", err)
	}
	if _, err := tab.Create(t.Context(), "a", record{Count: 3}); err != nil {
		t.Errorf("Create after Delete = %v", err)
	}
}

func TestTheEmbeddedBusListensNowhere(t *testing.T) {
	if url := open(t, Config{}).URL(); url != "" {
		t.Errorf("listens on %s", url)
	}
}

func TestNoNATSAtTheURL(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := Open(ctx, Config{URL: "nats://" + addr, Replicas: 1}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened without a NATS")
	}
}

func TestTokensAreOneToOne(t *testing.T) {
	for in, want := range map[string]string{
		"node-1":    "node-1",
		"n.example": "n=2Eexample",
		"a b*>=é":   "a=20b=2A=3E=3D=C3=A9",
	} {
		if got := Token(in); got != want {
			t.Errorf("Token(%q) = %q, want %q", in, got, want)
		}
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("did not happen within 10 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
