// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

var id = strings.Repeat("0123456789abcdef", 4)

func TestContainerID(t *testing.T) {
	for _, tt := range []struct {
		name, cgroup, want string
	}{
		{"a host process has none", "0::/\n", ""},
		{"a service has none", "0::/system.slice/ssh.service\n", ""},
		{"docker with the cgroupfs driver", "12:cpu,cpuacct:/docker/" + id + "\n0::/\n", id},
		{"docker with the systemd driver", "0::/system.slice/docker-" + id + ".scope\n", id},
		{"Kubernetes with the cgroupfs driver", "0::/kubepods/burstable/pod8c0f7c52-6b6c-4ab1-9b0a-f3c5a4f8c1de/" + id + "\n", id},
		{"Kubernetes with the systemd driver", "0::/kubepods.slice/kubepods-pod8c0f.slice/cri-containerd-" + id + ".scope\n", id},
		{"podman runs its container a level below", "0::/machine.slice/libpod-" + id + ".scope/container\n", id},
		{"a container in a container is the inner one", "0::/docker/" + strings.Repeat("f", 64) + "/docker/" + id + "\n", id},
		{"an id that is too short is none", "0::/docker/" + id[:63] + "\n", ""},
		{"a line without a path", "garbage\n0:\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := containerID([]byte(tt.cgroup)); got != tt.want {
				t.Errorf("containerID = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseStat(t *testing.T) {
	tail := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21\n"
	for _, tt := range []struct {
		name, in, comm, err string
	}{
		{name: "a plain name", in: "42 (bash)" + tail, comm: "bash"},
		{name: "a name with a space and parentheses", in: "42 (a (b) c)" + tail, comm: "a (b) c"},
		{name: "a name that is not UTF-8", in: "42 (\xff)" + tail, comm: "\uFFFD"},
		{name: "no name", in: "42 bash S", err: "no name"},
		{name: "cut short", in: "42 (bash) S 1 2", err: "fields behind the name"},
		{name: "parentheses the wrong way round", in: ")(", err: "no name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parseStat([]byte(tt.in))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want one saying %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.comm != tt.comm || p.start != 777 {
				t.Errorf("got %q started at %d, want %q at 777", p.comm, p.start, tt.comm)
			}
		})
	}
}

func TestRank(t *testing.T) {
	for _, tt := range []struct{ name, environ, want string }{
		{"none", "PATH=/bin\x00HOME=/\x00", ""},
		{"torchrun's", "RANK=3\x00WORLD_SIZE=8\x00", "3"},
		{"the more direct one of two", "JOB_COMPLETION_INDEX=1\x00RANK=12\x00", "12"},
		{"a variable that is no number is not a rank", "RANK=first\x00SLURM_PROCID=7\x00", "7"},
		{"a name that only ends in RANK", "MY_RANK=3\x00", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rank([]byte(tt.environ)); got != tt.want {
				t.Errorf("rank = %q, want %q", got, tt.want)
			}
		})
	}
}

// procWith writes a /proc with one process.
func procWith(t *testing.T, root string, pid int, comm string, start int, cgroup, environ string) {
	t.Helper()
	dir := filepath.Join(root, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stat := fmt.Sprintf("%d (%s) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %d 20", pid, comm, start)
	for name, content := range map[string]string{"stat": stat, "cgroup": cgroup, "environ": environ} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProcessIsReadAgainAfterAWhile(t *testing.T) {
	root, now := t.TempDir(), time.Unix(0, 0)
	r, err := New(DefaultConfig(), root, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	procWith(t, root, 7, "before", 100, "0::/docker/"+id+"\n", "RANK=1\x00")
	first := r.Subject(7)
	if want := (profile.Subject{PID: 7, Comm: "before", ContainerID: id, Rank: "1"}); *first != want {
		t.Fatalf("subject = %+v, want %+v", *first, want)
	}

	now = now.Add(time.Minute)
	if again := r.Subject(7); again != first {
		t.Error("an unchanged process is a new subject")
	}

	procWith(t, root, 7, "after", 100, "0::/\n", "")
	if r.Subject(7).Comm != "before" {
		t.Error("the process was read again at once")
	}
	now = now.Add(time.Minute)
	if r.Subject(7).Comm != "after" {
		t.Error("an exec was not seen after a minute")
	}

	if err := os.RemoveAll(filepath.Join(root, "7")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if r.Subject(7).Comm != "after" {
		t.Error("a process that has gone lost its name")
	}
	if s := r.Subject(8); *s != (profile.Subject{PID: 8}) {
		t.Errorf("a process never seen alive is %+v", *s)
	}
}

func TestARealProcess(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Env = []string{"RANK=5"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	// Start returns in the middle of the exec; once cat answers, its environment is in place.
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	r, err := New(DefaultConfig(), "/proc", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var got profile.Sample
	sink := r.Into(collector.SinkFunc(func(s profile.Sample) { got = s }))
	sink.Put(profile.Sample{PID: cmd.Process.Pid})
	if got.Subject.Comm != "cat" || got.Subject.Rank != "5" {
		t.Errorf("subject = %+v, want cat of rank 5", *got.Subject)
	}
}

func FuzzProcessFiles(f *testing.F) {
	f.Add([]byte("42 (a b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"), []byte("0::/docker/"+id), []byte("RANK=1\x00"))
	f.Fuzz(func(t *testing.T, stat, cgroup, environ []byte) {
		_, _ = parseStat(stat)
		if got := containerID(cgroup); got != "" && len(got) != idLength {
			t.Errorf("containerID = %q", got)
		}
		_ = rank(environ)
	})
}
