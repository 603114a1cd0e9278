// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bufio"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagon.dev/diagon/pkg/collector"
)

// sh runs a command and wants it to succeed.
func sh(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// compile builds testdata/work.c. What it exports is called shown.
func compile(t testing.TB, out, shown string, flags ...string) {
	t.Helper()
	sh(t, "gcc", append(flags, "-O1", "-Wl,--build-id", "-DSHOWN="+shown, "-o", out, "testdata/work.c")...)
}

// A running is a program that has said something and waits.
type running struct {
	*exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// run starts a program, or skips where this host does not allow it.
func run(t testing.TB, cmd *exec.Cmd) *running {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		if errors.Is(err, fs.ErrPermission) && cmd.SysProcAttr != nil {
			t.Skip(fmt.Errorf("namespaces: %w: %w", collector.ErrUnavailable, err))
		}
		t.Fatal(err)
	}
	r := &running{cmd, stdin, bufio.NewReader(stdout)}
	t.Cleanup(r.end)
	return r
}

// end kills the program and waits for it. It may be called again.
func (r *running) end() {
	if r.ProcessState == nil {
		_ = r.Process.Kill()
		_ = r.Wait()
	}
}

func (r *running) line(t testing.TB) string {
	t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s said %q: %v", r.Path, line, err)
	}
	return strings.TrimSpace(line)
}

// addresses reads what testdata/work.c says.
type addresses struct{ hidden, shown, main, malloc uint64 }

func (r *running) addresses(t testing.TB) (a addresses) {
	t.Helper()
	if _, err := fmt.Sscanf(r.line(t), "0x%x 0x%x 0x%x 0x%x", &a.hidden, &a.shown, &a.main, &a.malloc); err != nil {
		t.Fatal(err)
	}
	return a
}

// told is what Go's own reader says of a program that was not stripped.
type told struct {
	buildID string
	offsets map[string]uint64 // of functions in the file
}

func tell(t testing.TB, path string) told {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	is := told{buildID: hex.EncodeToString(note[16:]), offsets: map[string]uint64{}}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
				is.offsets[s.Name] = s.Value - p.Vaddr + p.Off
			}
		}
	}
	return is
}

// strip takes the symbols of a program away, and leaves them in debug.
func strip(t testing.TB, path, debug string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(debug), 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, "objcopy", "--only-keep-debug", path, debug)
	sh(t, "strip", path)
}
