// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// events makes the program fire: one perf event per online CPU, and the fork
// hook while only chosen processes are sampled.
type events struct {
	program *ebpf.Program
	hz      int
	perCPU  map[int]*os.File
	fork    io.Closer // nil when every process is sampled
}

// matchOnline opens events on CPUs that came and closes those of CPUs that
// went: the kernel takes the event of a CPU that goes offline out of service for good.
func (e *events) matchOnline() error {
	raw, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return err
	}
	online, err := parseCPUs(string(raw))
	if err != nil {
		return fmt.Errorf("/sys/devices/system/cpu/online: %w", err)
	}
	return e.match(online)
}

func (e *events) match(online []int) error {
	was := e.perCPU
	e.perCPU = make(map[int]*os.File, len(online))
	var errs []error
	for _, cpu := range online {
		if f, ok := was[cpu]; ok {
			e.perCPU[cpu] = f
			delete(was, cpu)
			continue
		}
		f, err := openEvent(e.program, cpu, e.hz)
		if errors.Is(err, unix.ENODEV) { // went offline since it was listed
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cpu %d: %w", cpu, err))
			continue
		}
		e.perCPU[cpu] = f
	}
	for _, f := range was {
		f.Close()
	}
	return errors.Join(errs...)
}

// Close stops the firing. It may be called twice.
func (e *events) Close() error {
	if e.fork != nil {
		e.fork.Close()
		e.fork = nil
	}
	return e.match(nil)
}

// openEvent makes program fire hz times a second on one CPU until the file is closed.
func openEvent(program *ebpf.Program, cpu, hz int) (*os.File, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: uint64(time.Second) / uint64(hz), // the clock counts nanoseconds
		Bits:   unix.PerfBitDisabled,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("perf_event_open", err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program.FD()); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("PERF_EVENT_IOC_SET_BPF", err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("PERF_EVENT_IOC_ENABLE", err)
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("perf event on cpu %d", cpu)), nil
}
