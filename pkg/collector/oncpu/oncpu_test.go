// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/profile"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		err    string
	}{
		{name: "the default is valid", change: func(*Config) {}},
		{name: "one and 999 are the bounds of the rate", change: func(c *Config) { c.Hz = 999 }},
		{name: "a rate of nothing", change: func(c *Config) { c.Hz = 0 }, err: "hz:"},
		{name: "a rate above the bound", change: func(c *Config) { c.Hz = 1000 }, err: "hz:"},
		{name: "a drain that spins", change: func(c *Config) { c.Drain = time.Millisecond }, err: "drain:"},
		{name: "a drain that starves", change: func(c *Config) { c.Drain = time.Minute }, err: "drain:"},
		{name: "process 0", change: func(c *Config) { c.PIDs = []int{1, 0} }, err: "pids:"},
		{name: "more processes than there is room for", change: func(c *Config) { c.PIDs = make([]int, maxPIDs+1) }, err: "pids:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			err := cfg.Validate()
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.err)) {
				t.Errorf("Validate = %v, want %q", err, tt.err)
			}
		})
	}
}

func TestSharesOfAKnownProgram(t *testing.T) {
	busy := buildBusy(t, "busy")
	cmd := start(t, exec.CommandContext(t.Context(), busy.path))
	mine := ofProcess(cmd.Process.Pid)

	began := time.Now()
	all := sampled(t, New(fast(), lossTolerated), atLeast(1000, mine))
	ended := time.Now()

	callers := make(map[string]int)
	rooted := 0
	for _, s := range all {
		if !mine(s) {
			continue
		}
		if s.Thread != "busy" || s.TID != s.PID {
			t.Fatalf("thread %d %q of process %d", s.TID, s.Thread, s.PID)
		}
		if s.Time.Before(began.Add(-time.Second)) || s.Time.After(ended.Add(time.Second)) {
			t.Fatalf("sampled at %v, which is not between %v and %v", s.Time, began, ended)
		}
		u := users(s.Stack)
		if len(u) == 0 {
			continue
		}
		path := make([]string, len(u))
		for i, f := range u {
			path[i] = busy.function(f.Address, busyFunctions...)
		}
		if path[0] != "spin" || len(path) < 2 {
			continue
		}
		callers[path[1]]++
		if strings.HasPrefix(strings.Join(path[2:], " "), "burn main __libc_start_call_main") {
			rooted++
		}
	}
	both := callers["three"] + callers["one"]
	if both < 900 {
		t.Fatalf("%d samples in three and one of 1000: %v", both, callers)
	}
	if share := 100 * float64(callers["three"]) / float64(both); share < 70 || share > 80 {
		t.Errorf("three has %.1f %%, want 75 within 5 points", share)
	}
	// At a function's first and last instructions the frame pointer is the caller's.
	if share := float64(rooted) / float64(both); share < 0.99 {
		t.Errorf("%.1f %% of stacks lead over burn and main to main's caller, want 99 or more", 100*share)
	}
}

func TestKernelThreadsHaveNoUserSide(t *testing.T) {
	kernelThread := func(s profile.Sample) bool {
		if strings.HasPrefix(s.Thread, "swapper/") {
			return true // the idle task has no number
		}
		const pfKthread = 0x00200000 // include/linux/sched.h
		process, err := procfs.NewProc(s.PID)
		if err != nil {
			return false // gone
		}
		stat, err := process.Stat()
		return err == nil && stat.Flags&pfKthread != 0
	}
	cfg := fast()
	cfg.Idle = true
	for _, s := range sampled(t, New(cfg, lossTolerated), atLeast(20, kernelThread)) {
		if kernelThread(s) && len(users(s.Stack)) > 0 {
			t.Errorf("%s (%d) has user frames: %v", s.Thread, s.PID, s.Stack)
		}
	}
}

func TestIdleIsLeftOutUnlessAsked(t *testing.T) {
	all := sampled(t, New(fast(), lossTolerated), func(all []profile.Sample) bool { return len(all) >= 500 })
	if n := count(all, func(s profile.Sample) bool { return strings.HasPrefix(s.Thread, "swapper/") }); n > 0 {
		t.Errorf("%d samples of the idle task", n)
	}
}

// TestChosenProcessesAndTheirChildren is what "record -- command" does: the
// command is held back until the collector samples, then let go.
func TestChosenProcessesAndTheirChildren(t *testing.T) {
	busy := buildBusy(t, "busy")
	start(t, exec.CommandContext(t.Context(), busy.path)) // somebody else
	cmd := exec.CommandContext(t.Context(), busy.path, "fork")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)

	cfg := fast()
	cfg.PIDs = []int{cmd.Process.Pid}
	c := New(cfg, lossTolerated)
	child := make(chan int, 1)
	go func() {
		<-c.Attached()
		io.WriteString(in, "\n")
		line, _ := bufio.NewReader(out).ReadString('\n')
		pid, _ := strconv.Atoi(strings.TrimSpace(line))
		child <- pid
	}()
	all := sampled(t, c, atLeast(200, func(s profile.Sample) bool { return s.PID != cmd.Process.Pid }))

	pid := <-child
	if n := count(all, ofProcess(pid)); n < 200 {
		t.Errorf("%d samples of the child %d, want 200", n, pid)
	}
	for _, s := range all {
		if s.PID != pid && s.PID != cmd.Process.Pid {
			t.Fatalf("a sample of process %d %q, which was not chosen", s.PID, s.Thread)
		}
	}
}

// TestEveryFiringIsDeliveredOrCounted overflows the smallest ring there is, and
// asks the kernel how often the program ran.
func TestEveryFiringIsDeliveredOrCounted(t *testing.T) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	skipOrFail(t, err)
	defer stats.Close()

	lost := make(map[string]uint64)
	cfg := Config{Hz: 999, Drain: time.Second, Idle: true}
	c := New(cfg, func(place string, n uint64) { lost[place] += n })
	c.ringBytes = uint32(os.Getpagesize())
	var bytes uint64
	all := sampled(t, c, func(all []profile.Sample) bool {
		bytes = max(bytes, c.Kernel().MapBytes)
		return len(all) >= 20
	})

	use := c.Kernel()
	taken := use.Programs[0].Runs
	if lost[LostRing] == 0 {
		t.Fatalf("nothing was lost of %d: the ring did not overflow", taken)
	}
	if got := uint64(len(all)) + lost[LostRing]; got != taken {
		t.Errorf("%d delivered and %v lost make %d, want the %d that were taken", len(all), lost, got, taken)
	}
	if use.Programs[0].RunTime <= 0 {
		t.Errorf("%d runs took no time", taken)
	}
	if bytes == 0 || use.MapBytes != 0 {
		t.Errorf("maps took %d bytes while it ran and %d after, want more than none and none", bytes, use.MapBytes)
	}
}

func TestCPUsComeAndGo(t *testing.T) {
	k, err := load(DefaultConfig(), 1<<16)
	skipOrFail(t, err)
	defer k.Close()
	e := &events{program: k.Oncpu, hz: 19}
	defer e.Close()

	match := func(online ...int) {
		t.Helper()
		if err := e.match(online); err != nil {
			t.Fatal(err)
		}
	}
	match(0)
	first := e.perCPU[0]
	if first == nil || len(e.perCPU) != 1 {
		t.Fatalf("events %v, want one on CPU 0", e.perCPU)
	}
	match(0)
	if e.perCPU[0] != first {
		t.Error("the event of a CPU that stayed was opened anew")
	}
	match()
	if len(e.perCPU) != 0 {
		t.Errorf("events %v, want none", e.perCPU)
	}
	if _, err := first.Stat(); err == nil {
		t.Error("the event of a CPU that went is still open")
	}
	match(0)
	if len(e.perCPU) != 1 {
		t.Errorf("events %v, want one on CPU 0 again", e.perCPU)
	}
}

func TestRingBytes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     Config
		atLeast uint32
		atMost  uint32
	}{
		{name: "the smallest is enough for small machines", cfg: Config{Hz: 1, Drain: 10 * time.Millisecond}, atLeast: 256 << 10, atMost: 256 << 10},
		{name: "the largest bounds the memory", cfg: Config{Hz: 999, Drain: time.Hour}, atLeast: 16 << 20, atMost: 16 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ringBytes(tt.cfg)
			if got&(got-1) != 0 || got < tt.atLeast || got > tt.atMost {
				t.Errorf("%d bytes, want a power of two from %d to %d", got, tt.atLeast, tt.atMost)
			}
		})
	}
}
