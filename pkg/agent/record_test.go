// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// busyC spends three quarters of its time in hot and one in warm, each called from work.
const busyC = `
#include <stdint.h>
static volatile uint64_t sink;
__attribute__((noinline)) void spin(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void hot(void) { spin(300000); sink++; }
__attribute__((noinline)) void warm(void) { spin(100000); sink++; }
__attribute__((noinline)) void work(void) { hot(); warm(); sink++; }
int main(void) { for (;;) work(); }
`

// startC builds a C program, unoptimised since gcc leaves frame pointers out of leaf functions otherwise, and runs it until the test ends.
func startC(t *testing.T, source string) int {
	t.Helper()
	dir := t.TempDir()
	file, program := filepath.Join(dir, "busy.c"), filepath.Join(dir, "busy")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O0", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	cmd := exec.Command(program)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func openNames(t *testing.T) Names {
	t.Helper()
	names, err := OpenNames("/proc", func(place string, n uint64) { t.Logf("lost %d at %s", n, place) }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = names.Close() })
	return names
}

func TestARecordingOfOneProcessSaysWhereItsTimeGoes(t *testing.T) {
	pid := startC(t, busyC)
	names := openNames(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ready := false
	w, err := Record(t.Context(), names, Recording{Hz: 199, PIDs: []int{pid}, Duration: 3 * time.Second, Ready: func() { ready = true }})
	if errors.Is(err, collector.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !ready {
		t.Error("nobody was told that sampling began")
	}
	if len(w.Losses) != 0 {
		t.Errorf("losses: %v", w.Losses)
	}
	var total, hot, rooted int64
	for _, r := range w.Records {
		if r.Subject.PID != pid {
			t.Errorf("a sample of process %d", r.Subject.PID)
		}
		v := r.Values[profile.CPU]
		total += v
		stack := r.Stack.String()
		if strings.Contains(stack, " hot ") {
			hot += v
		}
		if strings.Contains(stack, " work main ") {
			rooted += v
		}
	}
	if total == 0 {
		t.Fatal("no samples")
	}
	if share := float64(hot) / float64(total); math.Abs(share-0.75) > 0.05 {
		t.Errorf("hot has %.1f %% of the time, want 75 ± 5", 100*share)
	}
	if share := float64(rooted) / float64(total); share < 0.95 {
		t.Errorf("%.1f %% of the time reaches main, want 95 or more", 100*share)
	}
	if d := w.End.Sub(w.Start); d < 3*time.Second || d > 4*time.Second {
		t.Errorf("the window is %v long, want 3s", d)
	}
}

func TestARecordingEndsWithItsContext(t *testing.T) {
	names := openNames(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Record(ctx, names, Recording{Hz: 99}); err != nil && !errors.Is(err, collector.ErrUnavailable) {
		t.Fatal(err)
	}
}

func TestARecordingRefusesARateThatIsNone(t *testing.T) {
	if _, err := Record(t.Context(), openNames(t), Recording{Hz: 0}); err == nil || !strings.Contains(err.Error(), "hz: 0") {
		t.Errorf("err = %v", err)
	}
}
