// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/server"
)

// actVariable makes the test binary another program: see TestMain.
const actVariable = "TEST_DIAGON_ACT"

// TestMain also plays the agent: the test links itself as "diagon" into a folder. It
// writes what it was called with and its process id, and then ends as it is told.
func TestMain(m *testing.M) {
	switch os.Getenv(actVariable) {
	case "":
		os.Exit(m.Run())
	case "server": // the program itself
		main()
	case "agent dies":
		os.Stderr.WriteString("born " + strconv.Itoa(os.Getpid()) + "\n")
		os.Exit(3)
	case "agent stays", "agent is deaf":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		os.Stderr.WriteString("args " + strings.Join(os.Args[1:], " ") + "\nenv " + os.Getenv("DIAGON_HTTP") + "\nborn " + strconv.Itoa(os.Getpid()) + "\n")
		for range term {
			if os.Getenv(actVariable) == "agent stays" {
				os.Stderr.WriteString("ended in order\n")
				os.Exit(0)
			}
		}
	}
}

// lines collects what is written and can be waited for.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *lines) wait(t *testing.T, want string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if text := l.text(); strings.Contains(text, want) {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("no %q within 20 s in\n%s", want, l.text())
		}
	}
}

// pid is the process that said "born N".
func (l *lines) pid(t *testing.T) int {
	t.Helper()
	_, after, _ := strings.Cut(l.wait(t, "born "), "born ")
	pid, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return
		}
	}
	t.Errorf("process %d still lives", pid)
}

// bin is a folder in which this test is both programs.
func bin(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"diagon", "diagon-server"} {
		if err := os.Link(self, filepath.Join(dir, name)); err != nil {
			copyFile(t, self, filepath.Join(dir, name))
		}
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

func agentThat(t *testing.T, act string, out io.Writer) *localAgent {
	t.Helper()
	return &localAgent{
		program: filepath.Join(bin(t), "diagon"), args: []string{"agent", "--data", "D"},
		env:    append(withoutSettings(append(os.Environ(), "DIAGON_HTTP=1.2.3.4:5")), actVariable+"="+act),
		stderr: &prefixed{to: out, prefix: "agent: "}, log: slog.New(slog.NewTextHandler(out, nil)), stopWithin: 300 * time.Millisecond,
	}
}

func TestTheLocalAgentIsToldWhereToSendAndEndsInOrder(t *testing.T) {
	var out lines
	a := agentThat(t, "agent stays", &out)
	a.stopWithin = 20 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.run(ctx, "0.0.0.0:7171") }()
	pid := out.pid(t)
	cancel()
	<-done
	gone(t, pid)
	for _, want := range []string{"agent: args agent --data D --channel 127.0.0.1:7171/diagnostics\n", "agent: env \n", "agent: ended in order\n"} {
		if !strings.Contains(out.text(), want) {
			t.Errorf("no %q in\n%s", want, out.text())
		}
	}
}

func TestAnAgentThatDoesNotHearIsKilled(t *testing.T) {
	var out lines
	a := agentThat(t, "agent is deaf", &out)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.run(ctx, "127.0.0.1:7171") }()
	pid := out.pid(t)
	cancel()
	<-done
	gone(t, pid)
}

func TestAnAgentThatDiesIsStartedAgain(t *testing.T) {
	var out lines
	a := agentThat(t, "agent dies", &out)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.run(ctx, "127.0.0.1:7171") }()
	out.pid(t)
	out.wait(t, "exit status 3")
	for end := time.Now().Add(20 * time.Second); strings.Count(out.text(), "born ") < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not started again:\n%s", out.text())
		}
	}
	cancel()
	<-done
}

// serve runs the real program as a process of its own.
func serve(t *testing.T, out *lines, act string, args ...string) *exec.Cmd {
	t.Helper()
	dir := bin(t)
	// The agent inherits all but the server's settings, so it is told what to be by a wrapper.
	if act != "" {
		script := "#!/bin/sh\n" + actVariable + "='" + act + "' exec " + filepath.Join(dir, "diagon.real") + " \"$@\"\n"
		if err := os.Rename(filepath.Join(dir, "diagon"), filepath.Join(dir, "diagon.real")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "diagon"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(dir, "diagon-server"), append([]string{"--http=127.0.0.1:0", "--grpc=127.0.0.1:0", "--data", t.TempDir()}, args...)...)
	cmd.Env = append(os.Environ(), actVariable+"=server")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func TestTheProgramServesAndStopsItsAgent(t *testing.T) {
	var out lines
	cmd := serve(t, &out, "agent stays", "--local-agent")
	out.wait(t, "diagon is at  http://127.0.0.1:")
	pid := out.pid(t)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v:\n%s", err, out.text())
	}
	gone(t, pid)
	if !strings.Contains(out.text(), "agent: ended in order") {
		t.Errorf("the agent was not asked to end:\n%s", out.text())
	}
}

func TestTheAgentDoesNotOutliveAKilledServer(t *testing.T) {
	var out lines
	cmd := serve(t, &out, "agent is deaf", "--local-agent")
	pid := out.pid(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone(t, pid)
}

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.yaml")
	if err := os.WriteFile(file, []byte("http: 127.0.0.1:1\nretention-bytes: 5GiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("http: 127.0.0.1:1\nretention-byte: 5GiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		want []string
		err  string
	}{
		{"defaults are the fixed ones", nil, []string{"--print-config"},
			[]string{"http: 127.0.0.1:7170", "grpc: 127.0.0.1:7171", "data: ./diagon-data", "local-agent: false"}, ""},
		{"each source says where it is", []string{"DIAGON_GRPC=127.0.0.1:2"}, []string{"--config", file, "--data", "D", "--print-config"},
			[]string{"http: 127.0.0.1:1", "server.yaml:1", "grpc: 127.0.0.1:2", "DIAGON_GRPC", "data: D", "--data", "retention-bytes: 5GiB"}, ""},
		{"a key that is none names its line", nil, []string{"--config", wrong, "--print-config"}, nil, "wrong.yaml:2"},
		{"a flag that is none names the nearest", nil, []string{"--htp=x"}, nil, "--http"},
		{"a setting that is wrong names itself", nil, []string{"--retention-age=1s", "--http=127.0.0.1:0", "--grpc=127.0.0.1:0", "--data", t.TempDir()}, nil, "retention-age"},
		{"an agent that is not there", nil, []string{"--local-agent"}, nil, "local-agent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := command(tt.env)
			cmd.SetArgs(tt.args)
			cmd.SetOut(&out)
			cmd.SetErr(io.Discard)
			err := cmd.ExecuteContext(t.Context())
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want it to name %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
		})
	}
}

func TestALocalAgentOfAServerWithTLSMustBeToldSo(t *testing.T) {
	o := &options{server: server.DefaultConfig(), agent: true}
	o.server.Ingest.TLS.Cert = "cert.pem"
	o.program = filepath.Join(bin(t), "diagon")
	if _, err := newLocalAgent(o, nil, io.Discard, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--tls=on") {
		t.Errorf("err = %v", err)
	}
	o.agentArg = []string{"--tls=on"}
	if _, err := newLocalAgent(o, nil, io.Discard, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

func TestLinesAreWrittenWhole(t *testing.T) {
	var out bytes.Buffer
	p := &prefixed{to: &out, prefix: "> "}
	for _, part := range []string{"a", "b\nc\n", "\n", strings.Repeat("x", maxLine+1), "y\n"} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "> ab\n> c\n> \n> " + strings.Repeat("x", maxLine) + "\n> xy\n"; out.String() != want {
		t.Errorf("wrote %d bytes, want %d", out.Len(), len(want))
	}
}

// TestACommandLineThatCannotBeUnderstood runs the program itself, for its exit status.
func TestACommandLineThatCannotBeUnderstood(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, arg string
		status    int
		want      string
	}{
		{"an unknown flag", "--htpt=:0", 2, "diagon-server: unknown flag: --htpt; did you mean --http?\n"},
		{"a value of the wrong type", "--agent-hz=many", 2, "--agent-hz"},
		{"an argument", "serve", 2, `"serve": diagon-server takes flags only`},
		{"a setting that makes no sense", "--heartbeat=1ms", 1, "heartbeat: 1ms is not between 1s and 1h"},
		{"the version", "--version", 0, version + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, tt.arg, "--http=127.0.0.1:0", "--grpc=127.0.0.1:0", "--data="+t.TempDir())
			cmd.Env = append(os.Environ(), actVariable+"=server")
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != tt.status || !strings.Contains(string(out), tt.want) {
				t.Errorf("exit status %d, saying %s\nwant %d and %q", got, out, tt.status, tt.want)
			}
		})
	}
}
