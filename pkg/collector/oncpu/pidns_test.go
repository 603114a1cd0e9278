// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/profile"
)

// outsideEnv tells the test in the nested namespace about the program outside.
const outsideEnv = "DIAGON_TEST_OUTSIDE"

// TestInAPIDNamespaceOfItsOwn runs TestNested as in a pod without hostPID: in a
// new PID namespace with a /proc that shows no more, beside a program outside.
func TestInAPIDNamespaceOfItsOwn(t *testing.T) {
	outside := buildBusy(t, "busy-outside")
	start(t, exec.CommandContext(t.Context(), outside.path))

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNested$", "-test.v")
	cmd.Env = append(os.Environ(), outsideEnv+"="+outside.path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP: TestNested") {
		t.Skipf("%s", out)
	}
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		skipOrFail(t, err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestNested") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNested is the part of TestInAPIDNamespaceOfItsOwn that runs inside.
func TestNested(t *testing.T) {
	path := os.Getenv(outsideEnv)
	if path == "" {
		t.Skip("runs in a PID namespace of its own only")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	if namespace, err := procPIDNamespace(); err != nil || namespace == 0 {
		t.Fatalf("namespace %d, %v: want a nested one", namespace, err)
	}

	outside := openProgram(t, path)
	inside := buildBusy(t, "busy-inside")
	deeper := buildBusy(t, "busy-deeper")
	in := start(t, exec.CommandContext(t.Context(), inside.path))
	below := exec.CommandContext(t.Context(), deeper.path)
	below.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	start(t, below)

	const want = 100
	seen := make(map[string]int)
	all := sampled(t, New(fast(), lossTolerated), func(all []profile.Sample) bool {
		seen[all[len(all)-1].Thread]++
		return seen["busy-outside"] >= want && seen["busy-inside"] >= want && seen["busy-deeper"] >= want
	})

	t.Run("a process inside has the number that /proc gives it", func(t *testing.T) {
		checkStacks(t, all, "busy-inside", in.Process.Pid, inside, addressOf)
	})
	t.Run("so has one in a namespace below", func(t *testing.T) {
		checkStacks(t, all, "busy-deeper", below.Process.Pid, deeper, addressOf)
	})
	t.Run("one outside has none, but build-ids and offsets", func(t *testing.T) {
		checkStacks(t, all, "busy-outside", 0, outside, func(p *program, f profile.Frame) (uint64, error) {
			if f.Location == nil {
				return 0, fmt.Errorf("no location at 0x%x", f.Address)
			}
			if got := f.Location.Mapping.BuildID; got != p.buildID {
				return 0, fmt.Errorf("build-id %s, want %s", got, p.buildID)
			}
			return p.address(f.Location.Offset), nil
		})
	})
	t.Run("a number that is used again is not chosen again", func(t *testing.T) { testReusedNumber(t, inside) })
}

func addressOf(_ *program, f profile.Frame) (uint64, error) { return f.Address, nil }

// checkStacks checks that the threads of that name belong to process pid and
// that their stacks lead from the loop to main's caller, as where says.
func checkStacks(t *testing.T, all []profile.Sample, thread string, pid int, p *program, where func(*program, profile.Frame) (uint64, error)) {
	t.Helper()
	stacks, whole := 0, 0
	for _, s := range all {
		if s.Thread != thread {
			continue
		}
		if s.PID != pid || s.TID != pid {
			t.Fatalf("process %d, thread %d; want %d", s.PID, s.TID, pid)
		}
		u := users(s.Stack)
		if len(u) == 0 {
			continue
		}
		stacks++
		functions := make([]string, 0, len(u))
		for _, f := range u {
			address, err := where(p, f)
			if err != nil {
				t.Logf("%v: %v", s.Stack, err)
				break
			}
			functions = append(functions, p.function(address, busyFunctions...))
		}
		got := strings.Join(functions[:min(5, len(functions))], " ")
		if got == "spin three burn main __libc_start_call_main" || got == "spin one burn main __libc_start_call_main" {
			whole++
		}
	}
	if share := float64(whole) / float64(stacks); !(share >= 0.95) {
		t.Errorf("%d of %d stacks are whole, want 95 %% or more", whole, stacks)
	}
}

// startAs starts cmd so that it gets a number in this PID namespace. Somebody
// else's fork can take the number first; then ok is false.
func startAs(t *testing.T, pid int, cmd *exec.Cmd) (ok bool) {
	t.Helper()
	err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0)
	skipOrFail(t, err)
	return start(t, cmd).Process.Pid == pid
}

// testReusedNumber runs inside TestNested, where numbers can be chosen: the
// number of a chosen process that is gone goes to a stranger.
func testReusedNumber(t *testing.T, busy *program) {
	const number = 20000
	gone := exec.CommandContext(t.Context(), "true")
	if !startAs(t, number, gone) || gone.Wait() != nil {
		t.Fatalf("no process %d that is gone", number)
	}
	chosen := start(t, exec.CommandContext(t.Context(), busy.path))

	cfg := fast()
	cfg.PIDs = []int{number, chosen.Process.Pid}
	is := atLeast(200, ofProcess(chosen.Process.Pid))
	met := false
	all := sampled(t, New(cfg, lossTolerated), func(all []profile.Sample) bool {
		if !met {
			met = startAs(t, number, exec.CommandContext(t.Context(), busy.path))
			if !met {
				t.Fatalf("the stranger did not get number %d", number)
			}
		}
		return is(all)
	})
	if n := count(all, ofProcess(number)); n > 0 {
		t.Errorf("%d samples of a stranger who has the number of a chosen process", n)
	}
}

func TestLevelsOfThePIDNamespaces(t *testing.T) {
	for _, tt := range []struct {
		name, status string
		want         int
	}{
		{"/proc is of the process's own namespace", "Name:\tx\nNSpid:\t42\nThreads:\t1\n", 1},
		{"/proc is of the namespace around it", "Name:\tx\nNSpid:\t4711\t42\n", 2},
		{"a kernel without PID namespaces", "Name:\tx\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := levels([]byte(tt.status)); got != tt.want {
				t.Errorf("levels = %d, want %d", got, tt.want)
			}
		})
	}
}
