// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"diagon.dev/diagon/cmd/diagon/internal/client"
)

// TestRealServer talks to a diagon-server whose local agent is this program.
func TestRealServer(t *testing.T) {
	works, err := kernelWorks()
	if err != nil {
		t.Fatal(err)
	}
	if !works {
		t.Skip("the CPUs of this host cannot be sampled")
	}
	busy := exec.Command(buildBusy(t), "1000")
	start(t, busy)
	url := startServer(t)
	waitForSamples(t, url)

	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/real",
		RequireExplicitExec: true,
		Deadline:            time.Now().Add(2 * time.Minute),
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status, "share": shareOf, "interrupt": interrupt},
		Setup: func(env *testscript.Env) error {
			env.Setenv("DIAGON_SERVER", url)
			env.Setenv("BUSY_PID", strconv.Itoa(busy.Process.Pid))
			env.Setenv("GOCACHE", goEnv(t, "GOCACHE"))
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
	})
}

// start starts a process that ends with the test.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		killer := time.AfterFunc(15*time.Second, func() {
			t.Errorf("%s did not end", cmd.Path)
			cmd.Process.Kill()
		})
		defer killer.Stop()
		cmd.Wait()
	})
}

// startServer builds a diagon-server, starts it with its agent, and returns where it is.
func startServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	server := filepath.Join(dir, "diagon-server")
	if out, err := exec.Command("go", "build", "-o", server, "diagon.dev/diagon/cmd/diagon-server").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "diagon")); err != nil { // the agent beside the server
		t.Fatal(err)
	}
	cmd := exec.Command(server, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", filepath.Join(dir, "data"),
		"--local-agent", "--local-agent-flag=--http=", "--local-agent-flag=--node=here", "--local-agent-flag=--rate=99", "--local-agent-flag=--window=1s")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	t.Cleanup(func() { // after the server has ended
		if t.Failed() {
			t.Logf("the server said:\n%s", log.String())
		}
	})
	start(t, cmd)

	found := make(chan string, 1)
	go func() {
		defer close(found)
		address := regexp.MustCompile(`diagon is at\s+(\S+)`)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
				io.Copy(io.Discard, stdout)
				return
			}
		}
	}()
	select {
	case url, ok := <-found:
		if !ok {
			t.Fatal("the server ended without saying where it is")
		}
		return url
	case <-time.After(30 * time.Second):
		t.Fatal("the server does not say where it is")
	}
	return ""
}

// enough samples for a share to be told to within a few percent.
const enough = 150

// waitForSamples returns once the server has enough of the busy program.
func waitForSamples(t *testing.T, url string) {
	t.Helper()
	c, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		var folded strings.Builder
		err := c.Profile(t.Context(), client.Selection{Type: "samples", Query: `{comm="` + busyName + `"}`, From: "now-5m", To: "now", Format: "folded"}, &folded)
		if err != nil {
			t.Fatal(err)
		}
		samples := 0
		for line := range strings.Lines(folded.String()) {
			_, count, _ := cutLast(strings.TrimSpace(line), " ")
			n, err := strconv.Atoi(count)
			if err != nil {
				t.Fatal(err)
			}
			samples += n
		}
		if samples >= enough {
			return
		}
	}
	t.Fatalf("fewer than %d samples of the busy program came within a minute", enough)
}
