// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/oncpu"
	"diagon.dev/diagon/pkg/profile"
)

// TestMain also is the patient: a process that lives in other circumstances than this
// one and prints what it finds there.
func TestMain(m *testing.M) {
	if os.Getenv(patient) != "" {
		bePatient()
		return
	}
	os.Exit(m.Run())
}

// needKernel skips where the CPU cannot be sampled at all, and for that reason alone.
func needKernel(t *testing.T) {
	t.Helper()
	c := oncpu.New(oncpu.DefaultConfig(), func(string, uint64) {})
	ctx, cancel := contextUntil(c.Attached())
	defer cancel()
	err := c.Run(ctx, collector.SinkFunc(func(profile.Sample) {}))
	if errors.Is(err, collector.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestExamineWhereEverythingIsAllowed(t *testing.T) {
	needKernel(t)
	before := openFiles(t)
	start := time.Now()
	findings := Examine(t.Context(), DefaultConfig())
	t.Logf("took %v", time.Since(start))

	for _, name := range []string{OnCPU, "follow", "perf-events", "ring-buffer", "kernel-btf", KernelSymbols, "process-files", "deleted-files", "CAP_BPF"} {
		f, ok := Find(findings, name)
		if !ok || !f.Works || f.Reason() != "" {
			t.Errorf("%s: %+v, want it to work", name, f)
		}
	}
	names := make(map[string]bool)
	for _, f := range findings {
		if names[f.Name] {
			t.Errorf("%s: found twice", f.Name)
		}
		names[f.Name] = true
		if !f.Works && (f.Why == "" || f.Do == "") {
			t.Errorf("%s does not work, and says neither why nor what to do: %+v", f.Name, f)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

func TestExamineElsewhere(t *testing.T) {
	needKernel(t)
	seen := make(map[string][]Finding) // what was found in the same circumstances
	for _, tt := range []struct {
		name  string
		drop  []int
		clone uintptr
		mount bool // its own /proc
		want  string
		why   string // part of it
		do    string
	}{
		{name: "without CAP_BPF and CAP_SYS_ADMIN there is no profile", drop: []int{unix.CAP_BPF, unix.CAP_SYS_ADMIN}, want: OnCPU, why: "lacks CAP_BPF", do: "grant CAP_BPF"},
		{name: "without CAP_PERFMON and CAP_SYS_ADMIN there is no profile", drop: []int{unix.CAP_PERFMON, unix.CAP_SYS_ADMIN}, want: OnCPU, why: "lacks CAP_PERFMON", do: "grant CAP_PERFMON"},
		{name: "without CAP_PERFMON no CPU can be watched", drop: []int{unix.CAP_PERFMON, unix.CAP_SYS_ADMIN}, want: "perf-events", why: "perf_event_paranoid", do: "grant CAP_PERFMON"},
		{name: "without CAP_SYSLOG the kernel hides its addresses", drop: []int{unix.CAP_SYSLOG}, want: KernelSymbols, why: "kallsyms shows zeros", do: "grant CAP_SYSLOG"},
		{name: "without CAP_SYS_PTRACE other processes are closed", drop: []int{unix.CAP_SYS_PTRACE}, want: "process-files", why: "permission denied", do: "grant CAP_SYS_PTRACE"},
		{name: "without CAP_CHECKPOINT_RESTORE deleted files are lost", drop: []int{unix.CAP_CHECKPOINT_RESTORE, unix.CAP_SYS_ADMIN}, want: "deleted-files", why: "operation not permitted", do: "grant CAP_CHECKPOINT_RESTORE"},
		{name: "without CAP_SYS_ADMIN programs are not timed", drop: []int{unix.CAP_SYS_ADMIN}, want: "bpf-statistics", why: "operation not permitted", do: "bpf_stats_enabled=1"},
		{name: "without CAP_SYS_ADMIN that capability is missing", drop: []int{unix.CAP_SYS_ADMIN}, want: "CAP_SYS_ADMIN", why: "statistics", do: "grant CAP_SYS_ADMIN"},
		{name: "in a PID namespace others have no names", clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS, mount: true, want: HostPIDs, why: "PID namespace of its own", do: "hostPID: true"},
		{name: "a /proc of another PID namespace is called that", clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS, want: HostPIDs, why: "belongs to another PID namespace", do: "mount -t proc"},
		{name: "in a user namespace capabilities do not count", clone: unix.CLONE_NEWUSER, want: OnCPU, why: "operation not permitted", do: "outside of it"},
		{name: "a user namespace is called that", clone: unix.CLONE_NEWUSER, want: "user-namespace", why: "user namespace", do: "hostUsers: true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			where := fmt.Sprint(tt.drop, tt.mount, tt.clone)
			if seen[where] == nil {
				seen[where] = examineIn(t, circumstances{Drop: tt.drop, Mount: tt.mount}, tt.clone)
			}
			findings := seen[where]
			f, ok := Find(findings, tt.want)
			if !ok || f.Works || !strings.Contains(f.Why, tt.why) || !strings.Contains(f.Do, tt.do) {
				t.Errorf("%s: %+v, want it not to work because of %q, to be cured by %q", tt.want, f, tt.why, tt.do)
			}
			if line := Summary(findings); f.Area != AreaCapabilities && !strings.Contains(line, tt.want+" ("+f.Why) {
				t.Errorf("the summary does not tell of it: %s", line)
			}
		})
	}
}

func TestExamineInPIDNamespaceStillSamples(t *testing.T) {
	needKernel(t)
	findings := examineIn(t, circumstances{Mount: true}, unix.CLONE_NEWPID|unix.CLONE_NEWNS)
	if f, _ := Find(findings, OnCPU); !f.Works {
		t.Errorf("%+v, want it to work", f)
	}
}

func TestExamineTreeOfFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
		works bool
		says  string // part of the finding
	}{
		{name: "the lowest limit above the group counts", want: "memory-limit", says: "64 MiB", files: map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/kubepods/pod1/c1/memory.max": "max\n", "sys/fs/cgroup/kubepods/pod1/memory.max": "67108864\n"}},
		{name: "the manifest's limit is enough", want: "memory-limit", works: true, says: "256 MiB", files: map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}},
		{name: "the largest number of version 1 is no limit", want: "memory-limit", works: true, says: "none", files: map[string]string{
			"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}},
		{name: "a limit of version 1 counts", want: "memory-limit", says: "memory.limit_in_bytes is 1 MiB", files: map[string]string{
			"proc/self/cgroup": "4:cpu,memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n"}},
		{name: "version 2 alone", want: "cgroups", works: true, says: "version 2", files: map[string]string{"proc/self/cgroup": "0::/x\n"}},
		{name: "version 1 alone", want: "cgroups", works: true, says: "version 1", files: map[string]string{"proc/self/cgroup": "4:memory:/\n"}},
		{name: "no cgroups", want: "cgroups", says: "no container"},
		{name: "confidentiality forbids", want: "kernel-policy", says: "lockdown is at confidentiality", files: map[string]string{"sys/kernel/security/lockdown": "none integrity [confidentiality]\n"}},
		{name: "integrity does not", want: "kernel-policy", works: true, says: "lockdown=integrity", files: map[string]string{"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}},
		{name: "interpreted programs are slow", want: "kernel-policy", says: "several times slower", files: map[string]string{"proc/sys/net/core/bpf_jit_enable": "0\n"}},
		{name: "a seccomp filter is told", want: "kernel-policy", works: true, says: "seccomp=filter", files: map[string]string{"proc/self/status": "Seccomp:\t2\n"}},
		{name: "kallsyms of zeros", want: KernelSymbols, says: "kernel.kptr_restrict is 2", files: map[string]string{
			"proc/kallsyms": "0000000000000000 T _stext\n", "proc/sys/kernel/kptr_restrict": "2\n"}},
		{name: "one zero proves nothing", want: KernelSymbols, works: true, files: map[string]string{"proc/kallsyms": "0000000000000000 A fixed\nffffffff81000000 T _stext\n"}},
		{name: "an executable unread for lack of one capability", want: "process-files", says: "CAP_SYS_PTRACE", files: map[string]string{
			"proc/7/stat": "7 (a (b) c) S 1 7 7 0 -1 4194560 0", "proc/7/exe": "not a link", "proc/self/status": "CapEff:\t0000000000000004\n"}},
		{name: "a kernel thread has no executable to read", want: "process-files", works: true, says: "no other process", files: map[string]string{
			"proc/7/stat": "7 (kworker) I 2 0 0 0 -1 2097216 0"}},
		{name: "no pressure", want: "pressure", says: "psi=1"},
		{name: "tracefs", want: "tracefs", works: true, files: map[string]string{"sys/kernel/tracing/events/syscalls/header": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for path, content := range tt.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cfg := Config{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys"), Data: root}
			f, ok := Find(Examine(t.Context(), cfg), tt.want)
			if !ok || f.Works != tt.works || !strings.Contains(f.Detail+" "+f.Why+" "+f.Do, tt.says) {
				t.Errorf("%+v, want works %v and %q said", f, tt.works, tt.says)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []Finding
		want string
	}{
		{name: "nothing found", want: "nothing works; nothing is missing"},
		{name: "all is well", in: []Finding{{Name: "a", Works: true}, {Name: "b", Works: true}}, want: "works: a, b; nothing is missing"},
		{name: "what fails says why and what to do", in: []Finding{{Name: "a", Works: true}, {Name: "b", Why: "no", Do: "do this"}}, want: "works: a; does not: b (no; do this)"},
		{name: "causes and what nothing uses are left out", in: []Finding{{Name: "a", Works: true}, {Area: AreaCapabilities, Name: "CAP_X", Why: "x"}, {Area: AreaLater, Name: "l", Why: "x"}}, want: "works: a; nothing is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Summary(tt.in); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// examineIn runs Examine in a process of its own.
func examineIn(t *testing.T, c circumstances, clone uintptr) []Finding {
	t.Helper()
	told, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), patient+"="+string(told))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: clone}
	if clone&unix.CLONE_NEWUSER != 0 {
		own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = own, own
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var findings []Finding
	if err := json.Unmarshal(out, &findings); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return findings
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
