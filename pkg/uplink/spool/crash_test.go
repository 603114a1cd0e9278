// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/collector"
)

// appendIn makes this test program, started again, append to the spool in that
// folder until it is killed, saying each number once Append has returned.
const appendIn = "DIAGON_TEST_SPOOL_APPEND_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(appendIn); dir != "" {
		appendForever(dir)
	}
	os.Exit(m.Run())
}

func appendForever(dir string) {
	cfg := testConfig()
	cfg.Bytes = 64 << 20
	s, err := Open(dir, "a", cfg, func(string, uint64) {})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		sequence, err := s.Append(1, func(n uint64) ([]byte, error) { return crashPayload(n), nil })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(sequence)
	}
}

// crashPayload differs in length, so that segments end anywhere.
func crashPayload(n uint64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d,", n), int(n%997)+1)
}

func TestKilledWhileAppendingNothingThatWasAppendedIsLost(t *testing.T) {
	dir := t.TempDir()
	var said []uint64
	for range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), appendIn+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The first deadline is for a process that never begins; the second is the kill.
		kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		for lines, first := bufio.NewScanner(out), true; lines.Scan(); first = false {
			if first {
				kill.Reset(rand.N(200 * time.Millisecond))
			}
			n, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, n)
		}
		kill.Stop()
		cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if len(said) < 5 {
		t.Fatalf("only %d batches were appended", len(said))
	}
	for i := 1; i < len(said); i++ {
		if said[i] <= said[i-1] {
			t.Fatalf("number %d was given out after %d", said[i], said[i-1])
		}
	}

	lost := ledger{}
	s := mustOpen(t, dir, "a", testConfig(), lost)
	found := make(map[uint64]bool)
	for at := Position(0); ; {
		b, next, ok := s.Read(at)
		if !ok {
			break
		}
		if !bytes.Equal(b.Data, crashPayload(b.Sequence)) {
			t.Errorf("batch %d holds something else", b.Sequence)
		}
		found[b.Sequence] = true
		at = next
	}
	for _, n := range said {
		if !found[n] {
			t.Errorf("batch %d was appended and is gone", n)
		}
	}
	if st := s.Stats(); st.Damaged > 0 || len(lost) > 0 {
		t.Errorf("damaged %d, lost %v", st.Damaged, lost)
	}
	t.Logf("%d batches said, %d found, %d bytes torn", len(said), len(found), s.Stats().TornBytes)
}

// smallDisk mounts a file system of so many KiB.
func smallDisk(t *testing.T, kib int) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kib))
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: mount a tmpfs: %w", collector.ErrUnavailable, err)
	}
	if errors.Is(err, collector.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	dir := smallDisk(t, 512)
	folder := filepath.Join(dir, "spool")
	s := mustOpen(t, folder, "a", testConfig(), ledger{})
	appended := 0
	var err error
	for appended < 100 && err == nil {
		if _, err = s.Append(1, func(uint64) ([]byte, error) { return make([]byte, 20<<10), nil }); err == nil {
			appended++
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Append on a full disk = %v, want ENOSPC", err)
	}
	for range 20 { // the same again and again costs nothing more
		if _, err := s.Append(1, func(uint64) ([]byte, error) { return make([]byte, 20<<10), nil }); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Append on a full disk = %v, want ENOSPC", err)
		}
	}
	if st := s.Stats(); st.Batches != appended {
		t.Errorf("%d batches held, want the %d that were appended", st.Batches, appended)
	}
	last := s.LastSequence()

	// A restart on a disk that is full to the last byte is clean.
	s.Close()
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	s = mustOpen(t, folder, "a", testConfig(), ledger{})
	if st := s.Stats(); st.Batches != appended {
		t.Errorf("after a restart %d batches are held, want %d", st.Batches, appended)
	}
	if _, err := s.Append(1, func(uint64) ([]byte, error) { return []byte("x"), nil }); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Append on a full disk = %v, want ENOSPC", err)
	}

	// It goes on once there is room.
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.Ack("a", last)
	if n := put(t, s, 1, 20<<10); n <= last {
		t.Errorf("number %d was given out twice", n)
	}
	if st := s.Stats(); st.Batches != 1 {
		t.Errorf("%d batches held, want 1", st.Batches)
	}
}

// fill writes a file until there is no room.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 4096; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
