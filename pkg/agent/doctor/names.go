// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelSymbols looks for one address that is not hidden.
func (h *host) kernelSymbols(ctx context.Context) Finding {
	f := Finding{Area: AreaNames, Name: KernelSymbols}
	shown, err := showsAddresses(h.proc("kallsyms"))
	switch {
	case err != nil:
		f.Why = err.Error() + ": kernel frames stay without names"
		f.Do = "use a kernel built with CONFIG_KALLSYMS"
	case shown:
		f.Works, f.Detail = true, "the kernel shows its addresses"
	case h.sysctl("kernel.kptr_restrict") == "2":
		f.Why = "kallsyms shows zeros, kernel.kptr_restrict is 2: kernel frames stay without names"
		f.Do = "sysctl -w kernel.kptr_restrict=1"
	default:
		f.Why = "kallsyms shows zeros: kernel frames stay without names"
		f.Do = grant("CAP_SYSLOG")
		if h.held.has(unix.CAP_SYSLOG) {
			f.Do = "run outside of the user namespace, or sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
		}
	}
	return f
}

// showsAddresses reads lines of the form "ffffffff81000000 T _stext" as far as the first
// address that is not zero. A per-CPU symbol may lie at 0, so one zero proves nothing.
func showsAddresses(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 0; n < 1000 && lines.Scan(); n++ {
		address, _, _ := strings.Cut(lines.Text(), " ")
		if strings.Trim(address, "0") != "" {
			return true, nil
		}
	}
	return false, lines.Err()
}

// maxProcesses bounds how many processes are tried.
const maxProcesses = 200

// processFiles reads of other processes what names are made from.
func (h *host) processFiles(ctx context.Context) Finding {
	f := Finding{Area: AreaNames, Name: "process-files"}
	pids := h.otherProcesses()
	if len(pids) == 0 {
		f.Works, f.Optional, f.Detail = true, true, "no other process is to be seen"
		return f
	}
	readable, tried, refusal := 0, 0, error(nil)
	for _, pid := range pids {
		err := h.readProcess(pid)
		if gone(err) {
			continue
		}
		tried++
		if err == nil {
			readable++
		} else if refusal == nil {
			refusal = err
		}
	}
	f.Detail = fmt.Sprintf("of %d of %d other processes", readable, tried)
	missing := h.held.missing(unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH)
	switch {
	case refusal == nil:
		f.Works = true
	case missing == "" && readable > 0: // a security module may protect a few
		f.Works = true
		f.Detail += fmt.Sprintf(" (%v)", refusal)
	case missing == "":
		f.Why = refusal.Error() + ": frames of such processes stay without names"
		f.Do = "a security module forbids it: look into dmesg"
	default:
		f.Why = refusal.Error() + ": frames of such processes stay without names"
		f.Do = grant(missing)
	}
	return f
}

// readProcess does what naming a process's frames takes.
func (h *host) readProcess(pid string) error {
	if _, err := os.Readlink(h.proc(pid, "exe")); err != nil {
		return err
	}
	maps, err := os.Open(h.proc(pid, "maps"))
	if err != nil {
		return err
	}
	defer maps.Close()
	if _, err := maps.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = os.Stat(h.proc(pid, "root") + "/")
	return err
}

// gone reports whether err only says that the process has ended meanwhile.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// otherProcesses lists processes that have an executable, apart from this one.
func (h *host) otherProcesses() []string {
	dir, err := os.Open(h.cfg.Proc)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	self, _ := os.Readlink(h.proc("self"))
	var pids []string
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil || name == self || h.hasNoFile(name) {
			continue
		}
		if pids = append(pids, name); len(pids) == maxProcesses {
			break
		}
	}
	return pids
}

// hasNoFile reports whether a process is a kernel thread or has ended: both have no
// executable. Field 9 of stat holds the flags, and everyone may read it (proc(5)).
func (h *host) hasNoFile(pid string) bool {
	const kernelThread = 0x00200000 // PF_KTHREAD
	stat, err := read(h.proc(pid, "stat"))
	if err != nil {
		return true
	}
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 || fields[0] == "Z" || fields[0] == "X" {
		return true
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err != nil || flags&kernelThread != 0
}

// deletedFiles goes through map_files, the only way to a file that was deleted while it runs.
func (h *host) deletedFiles(ctx context.Context) Finding {
	f := Finding{Area: AreaNames, Name: "deleted-files"}
	dir := h.proc("self", "map_files")
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%s: is empty", dir)
	}
	if err == nil {
		// Stat follows the link, which is what takes the capability, and opens nothing.
		_, err = os.Stat(dir + "/" + entries[0].Name())
	}
	if err == nil {
		f.Works, f.Detail = true, "a file replaced while it runs can still be opened"
		return f
	}
	f.Why = err.Error() + ": files that were deleted or replaced while they run get no names"
	f.Do = "run outside of the user namespace"
	if missing := h.held.missing(unix.CAP_CHECKPOINT_RESTORE); missing != "" {
		f.Do = grant(missing)
	}
	return f
}

// debugFiles looks for the folder that distributions install symbols into.
func (h *host) debugFiles(ctx context.Context) Finding {
	f := Finding{Area: AreaNames, Name: "debug-files", Optional: true}
	const dir = "/usr/lib/debug/.build-id"
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		f.Why = dir + " is not there: functions of stripped files stay without names"
		f.Do = "install the -dbgsym or -debuginfo packages of what matters"
		return f
	}
	f.Works, f.Detail = true, dir
	return f
}
