// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"log/slog"
	"os"
	"path/filepath"
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

func TestOthersMayNotReadTheStore(t *testing.T) {
	for _, tt := range []struct {
		name         string
		before, want os.FileMode
	}{
		{"a new folder", 0, 0o750},
		{"one that was open to all", 0o755, 0o750},
		{"one that is closed further stays so", 0o700, 0o700},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if tt.before != 0 {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(dir, tt.before); err != nil { // whatever the umask
					t.Fatal(err)
				}
			}
			open(t, testConfig(dir))
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got&^tt.want != 0 {
				t.Errorf("mode %o, want %o or less", got, tt.want)
			}
		})
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		appendUntilKilled(dir)
	}
	os.Exit(m.Run())
}
