// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	agentStopWithin = 10 * time.Second
	restartMin      = time.Second
	restartMax      = 30 * time.Second
	livedLong       = time.Minute // after that a restart is not held against it
)

// A localAgent is `diagon agent` as a child of this process: a privileged program stays a
// program of its own.
type localAgent struct {
	program string
	args    []string // beside --channel
	env     []string
	stderr  io.Writer
	log     *slog.Logger

	stopWithin time.Duration // between SIGTERM and SIGKILL
}

// newLocalAgent finds the program, by default the one beside this.
func newLocalAgent(o *options, environ []string, stderr io.Writer, log *slog.Logger) (*localAgent, error) {
	program := o.program
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("local-agent: %w", err)
		}
		program = filepath.Join(filepath.Dir(self), "diagon")
	}
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("local-agent: the agent must lie beside this program: %w", err)
	}
	if o.server.Ingest.TLS.Cert != "" && !slices.ContainsFunc(o.agentArg, func(a string) bool { return strings.HasPrefix(a, "--tls") }) {
		return nil, errors.New("local-agent: the server speaks TLS: say how the agent shall, by --local-agent-flag=--tls=on and --local-agent-flag=--tls-ca=FILE")
	}
	if os.Geteuid() != 0 {
		log.Warn("not root: the local agent cannot load its kernel programs nor look into other users' processes, so CPU profiles will be missing; `diagon doctor` lists what works")
	}
	return &localAgent{
		program: program,
		args:    append([]string{"agent", "--data", filepath.Join(o.server.Data, "agent")}, o.agentArg...),
		env:     withoutSettings(environ),
		stderr:  &prefixed{to: stderr, prefix: "agent: "},
		log:     log,

		stopWithin: agentStopWithin,
	}, nil
}

// withoutSettings leaves out what is meant for the server: the agent reads the same prefix.
func withoutSettings(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, "DIAGON_") })
}

// run keeps the agent running until ctx is done, and has it ended when it returns.
func (a *localAgent) run(ctx context.Context, grpcAddr string) {
	// The kernel sends Pdeathsig when the thread that started the child ends, not the
	// process: so this goroutine keeps its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wait := restartMin
	for {
		started := time.Now()
		err := a.once(ctx, grpcAddr)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > livedLong {
			wait = restartMin
		}
		a.log.Warn("local agent ended and is started again", "err", err, "in", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, restartMax)
	}
}

func (a *localAgent) once(ctx context.Context, grpcAddr string) error {
	args := append(slices.Clone(a.args), "--channel", dialable(grpcAddr)+"/diagnostics")
	cmd := exec.CommandContext(ctx, a.program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = a.env, a.stderr, a.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = a.stopWithin
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, // it never outlives this process, however that ends
		Setpgid:   true,            // Ctrl-C reaches this process alone, which then ends the agent
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	a.log.Info("local agent runs", "pid", cmd.Process.Pid, "program", a.program)
	err := cmd.Wait()
	if err == nil {
		return errors.New("it ended by itself")
	}
	return err
}

// dialable is how this machine reaches a port that may be open on all addresses.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// prefixed puts a word before each line, and writes whole lines only. One goroutine writes.
type prefixed struct {
	to     io.Writer
	prefix string
	rest   []byte // of a line that has not ended
}

const maxLine = 64 << 10

func (p *prefixed) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 && len(p.rest) > maxLine {
			i = maxLine
		}
		if i < 0 {
			return len(b), nil
		}
		line := p.prefix + string(bytes.TrimSuffix(p.rest[:i], []byte("\n"))) + "\n"
		p.rest = bytes.TrimPrefix(p.rest[i:], []byte("\n"))
		if _, err := io.WriteString(p.to, line); err != nil {
			return len(b), err
		}
	}
}
