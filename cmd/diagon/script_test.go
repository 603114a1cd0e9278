// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/oncpu"
	"diagon.dev/diagon/pkg/profile"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"diagon": main, agentProgram: main})
}

// TestScripts runs each conversation under testdata/script. Those that need the kernel say
// so by [!kernel] skip.
func TestScripts(t *testing.T) {
	busy := buildBusy(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Deadline:            time.Now().Add(3 * time.Minute),
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    status,
			"share":     shareOf,
			"server":    startFakeServer,
			"interrupt": interrupt,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("BUSY", busy)
			env.Setenv("GOCACHE", goEnv(t, "GOCACHE")) // `go tool pprof` may have to be built
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
	})
}

// condition knows [kernel]: the CPUs of this host can be sampled.
func condition(name string) (bool, error) {
	if name != "kernel" {
		return false, errors.New("unknown condition " + name)
	}
	return kernelWorks()
}

// kernelWorks is false only where the collector says that the host cannot.
var kernelWorks = sync.OnceValues(func() (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := oncpu.New(oncpu.DefaultConfig(), func(string, uint64) {})
	go func() {
		select {
		case <-c.Attached():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := c.Run(ctx, collector.SinkFunc(func(profile.Sample) {}))
	if errors.Is(err, collector.ErrUnavailable) {
		return false, nil
	}
	return true, err
})

// busyName is no other program's on a host that is sampled whole.
const busyName = "talkbusy"

// buildBusy compiles the program whose functions and shares are known.
func buildBusy(t *testing.T) string {
	t.Helper()
	busy := filepath.Join(t.TempDir(), busyName)
	out, err := exec.Command("cc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", busy, "testdata/busy.c").CombinedOutput()
	if err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return busy
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// status N COMMAND ARGS... runs a command that must end with the status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with status %d, want %d", args[1], got, want)
	}
}

// share FILE REGEXP MIN MAX checks how many percent of the samples in folded stacks match.
func shareOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: share file regexp min max")
	}
	re := regexp.MustCompile(args[1])
	low, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	high, err := strconv.ParseFloat(args[3], 64)
	ts.Check(err)

	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	var matching, all int
	for lines := bufio.NewScanner(f); lines.Scan(); {
		stack, count, _ := cutLast(lines.Text(), " ")
		n, err := strconv.Atoi(count)
		ts.Check(err)
		all += n
		if re.MatchString(stack) {
			matching += n
		}
	}
	if all == 0 {
		ts.Fatalf("%s holds no samples", args[0])
	}
	if got := 100 * float64(matching) / float64(all); got < low || got > high {
		ts.Fatalf("%.1f %% of %d samples match %s, want %v to %v", got, all, args[1], low, high)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
