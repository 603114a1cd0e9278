// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/oncpu"
	"diagon.dev/diagon/pkg/profile"
)

// loadTime is far more than loading and attaching take on a slow machine.
const loadTime = 10 * time.Second

// onCPU runs the collector itself until it samples every CPU.
func (h *host) onCPU(ctx context.Context) Finding {
	f := Finding{Area: AreaSampling, Name: OnCPU}
	if err := h.sample(ctx, nil); err != nil {
		return h.refused(f, err, unix.CAP_BPF, unix.CAP_PERFMON)
	}
	f.Works, f.Detail = true, "BPF programs load and fire on each CPU"
	return f
}

// follow does the same for one process, which also hooks into fork.
func (h *host) follow(ctx context.Context) Finding {
	f := Finding{Area: AreaSampling, Name: "follow"}
	if err := h.sample(ctx, []int{os.Getpid()}); err != nil {
		f = h.refused(f, err, unix.CAP_BPF, unix.CAP_PERFMON)
		f.Why += ": `diagon record --pid` and `-- command` do not work"
		return f
	}
	f.Works, f.Detail = true, "one process and its children by themselves"
	return f
}

func (h *host) sample(ctx context.Context, pids []int) error {
	cfg := oncpu.DefaultConfig()
	cfg.PIDs = pids
	c := oncpu.New(cfg, func(string, uint64) {})

	ctx, cancel := context.WithTimeout(ctx, loadTime)
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		select {
		case <-c.Attached():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := c.Run(ctx, collector.SinkFunc(func(profile.Sample) {})); err != nil {
		return err
	}
	select {
	case <-c.Attached():
		return nil
	default:
		return fmt.Errorf("oncpu: not looked at: %w", context.Cause(ctx))
	}
}

// refused words why the kernel said no to something that the capabilities stand for.
func (h *host) refused(f Finding, err error, needs ...uint) Finding {
	f.Why = reason(err)
	switch missing := h.held.missing(needs...); {
	case missing != "":
		f.Why += ": this process lacks " + missing
		f.Do = grant(missing)
	case h.seccomp():
		f.Do = "a seccomp filter is in force: run without it (Kubernetes: privileged: true, or seccompProfile Unconfined)"
	case !h.initial("user", initialUserNamespace):
		f.Do = "capabilities of a user namespace are not enough: run outside of it"
	case errors.Is(err, os.ErrPermission):
		f.Do = "a security module or the boot's lockdown forbids it: look into dmesg"
	default:
		f.Do = "use Linux 5.15 or later with CONFIG_BPF_SYSCALL, CONFIG_PERF_EVENTS and CONFIG_DEBUG_INFO_BTF"
	}
	return f
}

// reason is err without the sentinel and the library's guess at a memory limit, which
// kernels since 5.11 do not have.
func reason(err error) string {
	text := strings.ReplaceAll(err.Error(), collector.ErrUnavailable.Error()+": ", "")
	text = strings.ReplaceAll(text, " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "")
	return strings.Join(strings.Fields(text), " ")
}

// perfEvents opens the event that fires the sampler, on each CPU.
func (h *host) perfEvents(ctx context.Context) Finding {
	f := Finding{Area: AreaSampling, Name: "perf-events"}
	dirs, err := filepath.Glob(h.sys("devices/system/cpu/cpu[0-9]*"))
	if err != nil || len(dirs) == 0 {
		f.Why, f.Do = "no CPU is listed in "+h.sys("devices/system/cpu"), "mount sysfs there"
		return f
	}
	opened := 0
	for _, dir := range dirs {
		cpu, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "cpu"))
		if err != nil {
			continue
		}
		err = tryEvent(cpu)
		if errors.Is(err, unix.ENODEV) { // offline
			continue
		}
		if err != nil {
			f = h.refused(f, fmt.Errorf("CPU %d: %w", cpu, err), unix.CAP_PERFMON)
			if paranoid := h.sysctl("kernel.perf_event_paranoid"); paranoid != "" && !h.held.can(unix.CAP_PERFMON) {
				f.Why += " and kernel.perf_event_paranoid is " + paranoid
			}
			return f
		}
		opened++
	}
	f.Works, f.Detail = opened > 0, fmt.Sprintf("CPU clock on %s", count(opened, "CPU"))
	return f
}

func tryEvent(cpu int) error {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: uint64(time.Second),
		Bits:   unix.PerfBitDisabled,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("perf_event_open", err)
	}
	return unix.Close(fd)
}

// ringBuffer makes one and opens its reader.
func (h *host) ringBuffer(ctx context.Context) Finding {
	f := Finding{Area: AreaSampling, Name: "ring-buffer"}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize())})
	if err != nil {
		return h.refused(f, err, unix.CAP_BPF)
	}
	defer m.Close()
	r, err := ringbuf.NewReader(m)
	if err != nil {
		return h.refused(f, err, unix.CAP_BPF)
	}
	defer r.Close()
	f.Works, f.Detail = true, "samples come through it"
	return f
}

// kernelTypes reads the kernel's own description of its structures.
func (h *host) kernelTypes(ctx context.Context) Finding {
	f := Finding{Area: AreaSampling, Name: "kernel-btf"}
	if _, err := btf.LoadKernelSpec(); err != nil {
		f.Why = reason(err) + ": programs cannot be fitted to this kernel"
		f.Do = "use a kernel built with CONFIG_DEBUG_INFO_BTF"
		return f
	}
	f.Works, f.Detail = true, "programs fit themselves to this kernel"
	return f
}

// statistics asks the kernel to time BPF programs, for a moment.
func (h *host) statistics(ctx context.Context) Finding {
	f := Finding{Area: AreaSampling, Name: "bpf-statistics", Optional: true}
	if h.sysctl("kernel.bpf_stats_enabled") == "1" {
		f.Works, f.Detail = true, "on: kernel.bpf_stats_enabled is 1"
		return f
	}
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		f.Why = reason(err) + ": what the programs cost in the kernel is not known"
		f.Do = "grant CAP_SYS_ADMIN, or sysctl -w kernel.bpf_stats_enabled=1"
		return f
	}
	stats.Close()
	f.Works, f.Detail = true, "the kernel can time BPF programs"
	return f
}

// helpers tries what the unwinder and the collectors to come will call.
func (h *host) helpers(ctx context.Context) Finding {
	f := Finding{Area: AreaLater, Name: "bpf-helpers", Optional: true}
	var have, missing []string
	for _, p := range []struct {
		name  string
		probe func() error
	}{
		{"bpf_loop", helper(asm.FnLoop)},
		{"bpf_task_pt_regs", helper(asm.FnTaskPtRegs)},
		{"task storage", func() error { return features.HaveMapType(ebpf.TaskStorage) }},
		{"cgroup id", helper(asm.FnGetCurrentCgroupId)},
	} {
		if err := p.probe(); err != nil {
			missing = append(missing, p.name)
		} else {
			have = append(have, p.name)
		}
	}
	f.Works, f.Detail = len(missing) == 0, strings.Join(have, ", ")
	if !f.Works {
		f.Why = "the kernel refuses " + strings.Join(missing, ", ")
		f.Do = "use Linux 5.17 or later"
		if lacks := h.held.missing(unix.CAP_BPF, unix.CAP_PERFMON); lacks != "" {
			f.Why, f.Do = f.Why+": this process lacks "+lacks, grant(lacks)
		}
	}
	return f
}

func helper(fn asm.BuiltinFunc) func() error {
	return func() error { return features.HaveProgramHelper(ebpf.PerfEvent, fn) }
}

// count is a number and its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
