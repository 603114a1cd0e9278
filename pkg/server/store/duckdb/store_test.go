// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"diagon.dev/diagon/pkg/server/store"
	"diagon.dev/diagon/pkg/server/store/storetest"
)

// testConfig fits the tests: small, and with no floor that a busy disk could be under.
func testConfig(dir string) Config {
	cfg := DefaultConfig(dir)
	cfg.MemoryBytes = 128 << 20
	cfg.Threads = 2
	cfg.FreeBytes = 0
	cfg.MaxAttached = 2
	return cfg
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestPromises(t *testing.T) {
	defer goleak.VerifyNone(t)
	storetest.Run(t, func(t *testing.T, dir string) store.Store { return open(t, testConfig(dir)) })
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		appendUntilKilled(dir)
	}
	os.Exit(m.Run())
}
