// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// kernelSymbols reads kallsyms with other means, or skips where it is hidden.
func kernelSymbols(t testing.TB) map[string]uint64 {
	t.Helper()
	if err := KernelSymbols(DefaultRoots()); errors.Is(err, collector.ErrUnavailable) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols := map[string]uint64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if at, err := strconv.ParseUint(fields[0], 16, 64); err == nil && len(fields) == 3 {
			symbols[fields[2]] = at
		}
	}
	return symbols
}

func TestKernelFunctions(t *testing.T) {
	at := kernelSymbols(t)
	s, _ := start(t)
	stack := resolve(t, s, 0, kernelFrames(at["schedule"], at["do_syscall_64"]+9, at["do_syscall_64"]+5)...)
	if got := profile.Stack(stack).String(); got != "schedule[k] do_syscall_64[k] do_syscall_64[k]" {
		t.Errorf("got %s", got)
	}
	l := stack[1].Location
	if l != stack[2].Location {
		t.Error("two addresses of a function are two places")
	}
	if want := at["do_syscall_64"] - at["_text"]; l.Offset != want {
		t.Errorf("offset %#x, want %#x from the start of the kernel", l.Offset, want)
	}
	if l.Mapping.Path != "[kernel]" || len(l.Mapping.BuildID) != 40 {
		t.Errorf("mapping %+v", l.Mapping)
	}
}

func TestAKernelThatHidesItsSymbols(t *testing.T) {
	proc := t.TempDir()
	hidden := "0000000000000000 T _text\n0000000000000000 t do_thing\n"
	if err := os.WriteFile(filepath.Join(proc, "kallsyms"), []byte(hidden), 0o600); err != nil {
		t.Fatal(err)
	}
	roots := DefaultRoots()
	roots.Proc = proc
	if err := KernelSymbols(roots); !errors.Is(err, collector.ErrUnavailable) || !strings.Contains(err.Error(), "CAP_SYSLOG") {
		t.Errorf("err = %v, want one that says what is missing", err)
	}
	s, _ := start(t, func(c *Config, r *Roots) { *r = roots })
	stack := resolve(t, s, 0, kernelFrames(0xffffffff81000010)...)
	if l := stack[0].Location; l.Named() || l.Mapping == nil || l.Offset != 0xffffffff81000010 {
		t.Errorf("got %+v", l)
	}
	if n := s.Stats().Unnamed[unnamedKernel]; n != 1 {
		t.Errorf("%d frames without a name because of the kernel, want 1", n)
	}
}
