// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// busyGo spends its time as busyC does. Go gives a leaf function a frame, and so a place in a
// walk by frame pointers, only when it has something on the stack: hence the array.
const busyGo = `package main

var sink uint64

//go:noinline
func spin(n uint64) {
	var lanes [8]uint64
	for i := uint64(0); i < n; i++ {
		lanes[i&7] += i
	}
	sink += lanes[n&7]
}

//go:noinline
func hot() { spin(300000) }

//go:noinline
func warm() { spin(100000) }

//go:noinline
func work() { hot(); warm() }

func main() {
	for {
		work()
	}
}
`

func startGo(t *testing.T, source string) int {
	t.Helper()
	dir := t.TempDir()
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "busygo")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(program)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// folded asks the server for the stacks of a process, as text.
func (s *realServer) folded(pid int) map[string]int64 {
	s.t.Helper()
	query := url.Values{"type": {"cpu"}, "format": {"folded"}, "from": {"now-1h"}, "query": {fmt.Sprintf(`{pid="%d"}`, pid)}}
	resp, err := http.Get("http://" + s.http + "/api/v1/profiles?" + query.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("%s\n%s", resp.Status, body)
	}
	stacks := make(map[string]int64)
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		value, err := strconv.ParseInt(lines.Text()[at+1:], 10, 64)
		if err != nil {
			s.t.Fatalf("folded line %q: %v", lines.Text(), err)
		}
		stacks[lines.Text()[:at]] += value
	}
	return stacks
}

func TestKnownProgramsComeOutOfTheHTTPAPIAsTheyAre(t *testing.T) {
	programs := []struct {
		name, hot, warm, path string // functions; the path that stacks take from main to them
		pid                   int
	}{
		{name: "C", hot: "hot", warm: "warm", path: "main;work;", pid: startC(t, busyC)},
		{name: "Go", hot: "main.hot", warm: "main.warm", path: "runtime.goexit;runtime.main;main.main;main.work;", pid: startGo(t, busyGo)},
	}
	s := newServer(t)
	a, stop := startAgent(t, s.grpc, t.TempDir())
	time.Sleep(15 * time.Second)
	drained(t, a)
	stop()

	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			var total, hot, warm, rooted int64
			for stack, value := range s.folded(p.pid) {
				total += value
				frames := strings.Split(stack, ";")
				for _, f := range frames {
					switch f {
					case p.hot:
						hot += value
					case p.warm:
						warm += value
					}
				}
				if strings.Contains(stack, p.path) {
					rooted += value
				}
			}
			if total == 0 {
				t.Fatal("no samples")
			}
			percent := func(v int64) float64 { return 100 * float64(v) / float64(total) }
			if math.Abs(percent(hot)-75) > 5 || math.Abs(percent(warm)-25) > 5 {
				t.Errorf("hot has %.1f %%, warm %.1f %%; want 75 and 25, each ± 5", percent(hot), percent(warm))
			}
			if percent(rooted) < 95 {
				t.Errorf("%.1f %% of the time comes from main, want 95 or more", percent(rooted))
			}
		})
	}
}
