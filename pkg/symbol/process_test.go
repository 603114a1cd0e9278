// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/procmaps"
	"diagon.dev/diagon/pkg/profile"
)

func scanAddress(line string, at *uint64) (int, error) { return fmt.Sscanf(line, "0x%x", at) }

// inRoot makes a command run with another root directory.
func inRoot(cmd *exec.Cmd, root string) *exec.Cmd {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	return cmd
}

// inNamespaces makes a command run in mount and PID namespaces of its own.
func inNamespaces(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	return cmd
}

func TestAFileThatOnlyTheProcessSees(t *testing.T) {
	path, hidden := filepath.Join(t.TempDir(), "work"), t.TempDir()
	compile(t, path, "shown")
	is := tell(t, path)
	script := fmt.Sprintf("mount --make-rprivate / && mount -t tmpfs none %[2]s && cp %[1]s %[2]s/only && exec %[2]s/only", path, hidden)
	p := run(t, inNamespaces(exec.CommandContext(t.Context(), "sh", "-c", script)))
	at := p.addresses(t)
	if _, err := os.Stat(hidden + "/only"); err == nil {
		t.Fatal("the test sees the file too")
	}
	s, _ := start(t)
	stack := resolve(t, s, p.Process.Pid, user(at.hidden+5)...)
	wantFunction(t, stack[0].Location, "hidden", is)
	if m := stack[0].Location.Mapping; m.Path != hidden+"/only" {
		t.Errorf("mapping %+v", m)
	}
}

func TestTheProgramOnDiskIsNoLongerTheOneThatRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, path string) error
	}{
		{"it was deleted", func(t *testing.T, path string) error { return os.Remove(path) }},
		{"another was put in its place", func(t *testing.T, path string) error {
			compile(t, path+".new", "another")
			return os.Rename(path+".new", path)
		}},
		{"a FIFO was put in its place", func(t *testing.T, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return unix.Mkfifo(path, 0o600)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "work")
			compile(t, path, "shown")
			is := tell(t, path)
			p := run(t, exec.CommandContext(t.Context(), path))
			at := p.addresses(t)
			if err := tt.change(t, path); err != nil {
				t.Fatal(err)
			}
			s, _ := start(t)
			stack := resolve(t, s, p.Process.Pid, user(at.shown+5)...)
			wantFunction(t, stack[0].Location, "shown", is)
			if m := stack[0].Location.Mapping; m.Path != path {
				t.Errorf("path %q, want %q without the kernel's remark", m.Path, path)
			}
		})
	}
}

func TestAPathIsTrustedOnlyWhileItLeadsToTheMappedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lib")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	// No range of map_files: what a host without CAP_CHECKPOINT_RESTORE has.
	m := procmaps.Mapping{Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev), Inode: st.Ino, Path: path}
	self, err := openProcess("/proc", os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()

	f, id, err := openMapped(self, &m, "/")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); string(b) != "one" || err != nil || id != identify(&st) {
		t.Errorf("read %q, %v, %+v", b, err, id)
	}
	f.Close()

	if err := os.WriteFile(path+".new", []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if f, _, err := openMapped(self, &m, "/"); !errors.Is(err, errReplaced) {
		closeIf(f)
		t.Errorf("err = %v, want %v", err, errReplaced)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	m.Inode = st.Ino
	if f, _, err := openMapped(self, &m, "/"); !errors.Is(err, errNotRegular) {
		closeIf(f)
		t.Errorf("err = %v, want %v", err, errNotRegular)
	}
}

func TestALinkDoesNotLeadOutOfTheProcessRoot(t *testing.T) {
	root := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("host"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if fd, err := openBelow(root, "/link"); err == nil {
		unix.Close(fd)
		t.Error("an absolute link was followed out of the root")
	}
	if fd, err := openBelow(root, "../../../../../../../../"+secret); err == nil {
		unix.Close(fd)
		t.Error("dots led out of the root")
	}
}

func TestAProcessThatExecutesAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	compile(t, before, "shown_before", "-no-pie")
	compile(t, after, "shown_after", "-no-pie")
	s, l := start(t)

	p := run(t, exec.CommandContext(t.Context(), before, after))
	at := p.addresses(t)
	stack := resolve(t, s, p.Process.Pid, user(at.shown+5)...)
	if got := stack.String(); got != "shown_before" {
		t.Fatalf("before exec: %s", got)
	}

	taken := time.Now() // before the exec, looked at after it
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	then := p.addresses(t)
	if then.shown != at.shown {
		t.Fatalf("the programs do not overlap: %#x and %#x", at.shown, then.shown)
	}
	time.Sleep(2 * checkAfter)

	var late profile.Sample
	s.Into(collector.SinkFunc(func(sample profile.Sample) { late = sample })).
		Put(profile.Sample{Time: taken, PID: p.Process.Pid, Stack: user(at.shown + 5)})
	if got := late.Stack[0].Location; got.Named() || l.at("exec") != 1 {
		t.Errorf("a sample that may be of either program is called %s, %d lost at exec", late.Stack, l.at("exec"))
	}
	if got := resolve(t, s, p.Process.Pid, user(then.shown+5)...).String(); got != "shown_after" {
		t.Errorf("after exec: %s", got)
	}
}

func TestAProcessThatEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work")
	compile(t, path, "shown")
	s, l := start(t)

	seen := run(t, exec.CommandContext(t.Context(), path))
	at := seen.addresses(t)
	resolve(t, s, seen.Process.Pid, user(at.shown+5)...)
	seen.end()
	time.Sleep(2 * checkAfter)
	// Samples that were on their way: known addresses, and others of a file that is still there.
	if got := resolve(t, s, seen.Process.Pid, user(at.shown+5, at.main+9)...).String(); got != "shown main" {
		t.Errorf("after its end: %s", got)
	}
	if n := l.at("exited"); n != 0 {
		t.Errorf("%d lost at exited", n)
	}

	never := run(t, exec.CommandContext(t.Context(), path))
	at = never.addresses(t)
	never.end()
	stack := resolve(t, s, never.Process.Pid, user(at.shown+5, at.main+9)...)
	for i, want := range []uint64{at.shown + 5, at.main + 8} {
		if got := stack[i].Location; got == nil || got.Mapping != nil || got.Offset != want || got.Named() {
			t.Errorf("frame %d is %+v, want the bare address %#x", i, got, want)
		}
	}
	if n := l.at("exited"); n != 1 {
		t.Errorf("%d lost at exited, want 1 for one sample", n)
	}
}

func TestCodeLoadedAfterTheFirstSample(t *testing.T) {
	s, _ := start(t)
	resolve(t, s, os.Getpid(), user(8)...)

	path := filepath.Join(t.TempDir(), "work.so")
	compile(t, path, "shown", "-shared", "-fPIC")
	is := tell(t, path)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	code, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(code); err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(2 * rereadFirst)
	at := addressOf(code) + is.offsets["shown"] + 5
	stack := resolve(t, s, os.Getpid(), user(at, 8)...)
	wantFunction(t, stack[0].Location, "shown", is)
	if l := stack[1].Location; l.Mapping != nil || l.Offset != 7 {
		t.Errorf("an address in no mapping is %+v", l)
	}
}

func TestRan(t *testing.T) {
	now := time.Now()
	old := procmaps.Table{Mappings: []procmaps.Mapping{{Start: 0x1000, End: 0x3000}}}
	young := procmaps.Table{Mappings: []procmaps.Mapping{{Start: 0x2000, End: 0x4000}}}
	p := &process{image: image{table: young}, since: now, previous: &old}
	for _, tt := range []struct {
		name  string
		at    time.Time
		stack []profile.Frame
		want  bool
	}{
		{"taken after the change was seen", now.Add(time.Second), user(0x2500), true},
		{"taken before, fits both", now.Add(-time.Second), user(0x2500), false},
		{"taken before, fits the new one only", now.Add(-time.Second), user(0x2500, 0x3500), true},
		{"taken before, fits the old one only", now.Add(-time.Second), user(0x1500), false},
		{"taken before, fits neither", now.Add(-time.Second), user(0x9000), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.ran(tt.at, tt.stack); got != tt.want {
				t.Errorf("ran = %v", got)
			}
		})
	}
}
