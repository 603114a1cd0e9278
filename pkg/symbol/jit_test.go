// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/profile"
)

// generated makes executable memory of no file.
func generated(t *testing.T) uint64 {
	t.Helper()
	code, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(code); err != nil {
			t.Error(err)
		}
	})
	return addressOf(code)
}

func TestCodeMadeAtRunTime(t *testing.T) {
	base := generated(t)
	path := fmt.Sprintf("/tmp/perf-%d.map", os.Getpid())
	t.Cleanup(func() { os.Remove(path) })
	say := func(lines ...string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := start(t)
	now := time.Now()
	s.now = func() time.Time { return now }
	named := func(at ...uint64) string {
		t.Helper()
		return resolve(t, s, os.Getpid(), user(at...)...).String()
	}

	if got, want := named(base+0x10), fmt.Sprintf("[anon]+%#x", base+0x10); got != want {
		t.Errorf("without a map: %s, want %s", got, want)
	}
	say(fmt.Sprintf("%x 40 LazyCompile:~step /app/a b.js:7", base), "not a line", fmt.Sprintf("0x%x 0x20 _ZN3jit4codeEv", base+0x40))
	now = now.Add(2 * time.Second)
	if got := named(base+0x10, base+0x50, base+0x70); !strings.HasPrefix(got, "LazyCompile:~step /app/a b.js:7 jit::code [anon]+") {
		t.Errorf("got %s", got)
	}
	// The runtime has thrown step away, and put other code to its place.
	say(fmt.Sprintf("%x 30 LazyCompile:*fast /app/c.js:1", base+8))
	now = now.Add(2 * time.Second)
	if got := named(base+0x10, base+0x3f); !strings.HasPrefix(got, "LazyCompile:*fast /app/c.js:1 LazyCompile:~step") {
		t.Errorf("after the code was replaced: %s", got)
	}
}

func TestAPerfMapInsideTheNamespacesOfAProcess(t *testing.T) {
	script := "mount --make-rprivate / && mount -t tmpfs none /tmp && echo $$ && exec python3 -c '" + strings.Join([]string{
		"import mmap, ctypes, sys",
		"m = mmap.mmap(-1, 65536, prot=mmap.PROT_READ|mmap.PROT_WRITE|mmap.PROT_EXEC)",
		"at = ctypes.addressof(ctypes.c_char.from_buffer(m))",
		`open("/tmp/perf-1.map", "w").write("%x 100 inner::function\n" % at)`,
		`print("0x%x" % at, flush=True)`,
		"sys.stdin.read(1)",
	}, "\n") + "'"
	cmd := inNamespaces(exec.CommandContext(t.Context(), "sh", "-c", script))
	cmd.Dir = "/" // the test's own folder may lie below /tmp, which is another one there
	p := run(t, cmd)
	if inner := p.line(t); inner != "1" {
		t.Fatalf("the process calls itself %s", inner)
	}
	var at uint64
	if _, err := scanAddress(p.line(t), &at); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t)
	if got := resolve(t, s, p.Process.Pid, user(at+0x20)...).String(); got != "inner::function" {
		t.Errorf("got %s", got)
	}
}

func TestFunctionsOfTheVDSO(t *testing.T) {
	image, err := readVDSO()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	base := mappingOf(t, "[vdso]")
	s, _ := start(t)
	named := 0
	for _, symbol := range symbols {
		if elf.ST_TYPE(symbol.Info) != elf.STT_FUNC || symbol.Size == 0 {
			continue
		}
		l := resolve(t, s, os.Getpid(), user(base+symbol.Value+1)...)[0].Location
		if !l.Named() || !strings.HasSuffix(symbol.Name, strings.TrimLeft(l.Lines[0].Function, "_")) {
			t.Errorf("%s is called %v", symbol.Name, profile.Stack{{Location: l}})
		}
		if l.Mapping.Path != "[vdso]" || l.Mapping.BuildID == "" {
			t.Errorf("mapping %+v", l.Mapping)
		}
		named++
	}
	if named == 0 {
		t.Error("the vdso has no functions")
	}
}

func mappingOf(t *testing.T, name string) (start uint64) {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), name) {
			if _, err := fmt.Sscanf(lines.Text(), "%x-", &start); err != nil {
				t.Fatal(err)
			}
		}
	}
	return start
}
