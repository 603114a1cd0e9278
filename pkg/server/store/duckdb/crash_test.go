// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// crashDirEnv makes the test binary append to the store in that folder until it is killed.
const crashDirEnv = "DIAGON_TEST_CRASH_DIR"

var crashStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func crashBatch(sequence uint64) store.Batch {
	b := store.Batch{Node: "a", BootID: "boot", Sequence: sequence}
	b.Start = crashStart.Add(time.Duration(sequence) * 10 * time.Second)
	b.End = b.Start.Add(10 * time.Second)
	for i := range 50 {
		leaf := &profile.Location{Lines: []profile.Line{{Function: fmt.Sprintf("f%d-%d", sequence%9, i)}}}
		b.Records = append(b.Records, profile.Record{
			Stack:  profile.Stack{{Location: leaf}},
			Values: profile.Values{profile.CPU: 1},
		})
	}
	return b
}

// appendUntilKilled says on standard output which sequences were acknowledged.
func appendUntilKilled(dir string) {
	s, err := Open(context.Background(), testConfig(dir), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	first, err := s.DurableSequence(context.Background(), "a", "boot")
	for sequence := first + 1; err == nil; sequence++ {
		if err = s.Append(context.Background(), crashBatch(sequence)); err == nil {
			fmt.Println(sequence)
		}
	}
	fmt.Println("append:", err)
	os.Exit(1)
}

func TestWhatIsAcknowledgedSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	var acknowledged uint64
	for range 3 {
		acknowledged = runUntilKilled(t, dir, 30)
	}
	s := open(t, testConfig(dir))
	held, err := s.DurableSequence(t.Context(), "a", "boot")
	if err != nil {
		t.Fatal(err)
	}
	// The last one may have been written without having been heard of.
	if held < acknowledged || held > acknowledged+1 {
		t.Errorf("sequence %d is held, %d was acknowledged", held, acknowledged)
	}
	sel := store.Selection{From: crashStart, To: crashStart.Add(24 * time.Hour)}
	w, err := s.Stacks(t.Context(), profile.CPU, sel, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, stack := range w.Stacks {
		total += stack.Value
	}
	if want := int64(held) * 50; total != want {
		t.Errorf("the store adds up to %d, want %d: 50 for each batch held", total, want)
	}
}

// runUntilKilled kills the appending process by SIGKILL after n acknowledgements and
// returns the last that came.
func runUntilKilled(t *testing.T, dir string, n int) uint64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDirEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last uint64
	lines := bufio.NewScanner(out)
	for seen := 0; lines.Scan(); seen++ {
		sequence, err := strconv.ParseUint(strings.TrimSpace(lines.Text()), 10, 64)
		if err != nil {
			t.Errorf("the appending process says %q", lines.Text())
			break
		}
		last = sequence
		if seen == n {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	return last
}
