// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"context"
	"debug/elf"
	"encoding/hex"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// A program is testdata/busy.c, built with frame pointers and linked at fixed addresses.
type program struct {
	path    string
	buildID string
	symbols map[string]elf.Symbol
	loads   []*elf.Prog
}

// buildBusy builds the program under a name, which becomes its threads'.
func buildBusy(t *testing.T, name string) *program {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	gcc := exec.CommandContext(t.Context(), "gcc", "-O0", "-g", "-fno-omit-frame-pointer", // above -O0 a leaf function has no frame of its own
		"-static", "-no-pie", "-Wl,--build-id=sha1", "-o", path, "testdata/busy.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return openProgram(t, path)
}

// openProgram reads what the tests must know of the program at path.
func openProgram(t *testing.T, path string) *program {
	t.Helper()
	p := &program{path: path, symbols: make(map[string]elf.Symbol)}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		p.symbols[s.Name] = s
	}
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	p.buildID = hex.EncodeToString(note[16:]) // behind namesz, descsz, type and "GNU\0"
	for _, load := range f.Progs {
		if load.Type == elf.PT_LOAD {
			p.loads = append(p.loads, load)
		}
	}
	return p
}

// busyFunctions are those on the way from main's caller to the loop.
var busyFunctions = []string{"spin", "three", "one", "burn", "main", "__libc_start_call_main"}

// in reports whether an address lies in a function. A return address may be the
// one behind a function's last instruction.
func (p *program) in(function string, address uint64) bool {
	s, ok := p.symbols[function]
	return ok && address >= s.Value && address <= s.Value+s.Size
}

// function is which of the functions an address lies in, or "".
func (p *program) function(address uint64, functions ...string) string {
	for _, name := range functions {
		if p.in(name, address) {
			return name
		}
	}
	return ""
}

// address turns an offset into the file into an address.
func (p *program) address(offset uint64) uint64 {
	for _, load := range p.loads {
		if offset >= load.Off && offset < load.Off+load.Filesz {
			return offset - load.Off + load.Vaddr
		}
	}
	return 0
}

// skipOrFail ends the test unless err is nil: skipped when this host cannot.
func skipOrFail(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if !errors.Is(err, collector.ErrUnavailable) {
		err = unavailable(err)
	}
	if errors.Is(err, collector.ErrUnavailable) {
		t.Skip(err)
	}
	t.Fatal(err)
}

// start starts the program for as long as the test runs.
func start(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	skipOrFail(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// sampled runs a collector until enough says that the samples so far do, and
// fails the test when they still do not after a minute.
func sampled(t *testing.T, c *Collector, enough func(all []profile.Sample) bool) []profile.Sample {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all []profile.Sample
	satisfied := false
	err := c.Run(ctx, collector.SinkFunc(func(s profile.Sample) {
		all = append(all, s)
		if !satisfied && enough(all) {
			satisfied = true
			cancel()
		}
	}))
	skipOrFail(t, err)
	if !satisfied {
		t.Fatalf("still not enough after %d samples in a minute", len(all))
	}
	return all
}

// count counts the samples of which is says so.
func count(all []profile.Sample, is func(profile.Sample) bool) int {
	n := 0
	for _, s := range all {
		if is(s) {
			n++
		}
	}
	return n
}

// atLeast is enough once n samples are such.
func atLeast(n int, is func(profile.Sample) bool) func([]profile.Sample) bool {
	seen := 0
	return func(all []profile.Sample) bool {
		if is(all[len(all)-1]) {
			seen++
		}
		return seen >= n
	}
}

func ofProcess(pid int) func(profile.Sample) bool {
	return func(s profile.Sample) bool { return s.PID == pid }
}

// users is the user side of a stack.
func users(stack profile.Stack) profile.Stack {
	for i, f := range stack {
		if f.Realm == profile.RealmUser {
			return stack[i:]
		}
	}
	return nil
}

// fast is a configuration for tests that wait for samples.
func fast() Config { return Config{Hz: 999, Drain: 50 * time.Millisecond} }

// lossTolerated is for tests in which a full ring does not matter.
func lossTolerated(string, uint64) {}
