// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// interrupt STATUS REGEXP COMMAND ARGS... presses Ctrl-C once the command has said what matches,
// and expects that status of it. All that it says goes into the file "output".
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt status regexp command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	said := &waiter{re: regexp.MustCompile(args[1]), met: make(chan struct{})}

	cmd := exec.Command(lookPath(ts, args[2]), args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = os.Environ()
	for _, name := range []string{"PATH", "HOME", "DIAGON_SERVER"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stdout, cmd.Stderr = said, said
	ts.Check(cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); cmd.Wait() }()

	const patience = time.Minute
	killer := time.AfterFunc(2*patience, func() { cmd.Process.Kill() })
	defer killer.Stop()
	select {
	case <-said.met:
		time.Sleep(time.Second) // so that there is something to be kept
		ts.Check(cmd.Process.Signal(os.Interrupt))
	case <-ended:
	case <-time.After(patience):
		cmd.Process.Kill()
	}
	<-ended
	output := said.bytes()
	ts.Logf("%s", output)
	ts.Check(os.WriteFile(ts.MkAbs("output"), output, 0o600))
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("%s ended with status %d, want %d", args[2], got, want)
	}
}

func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	ts.Fatalf("%s: not found", name)
	return ""
}

// A waiter keeps what is written and closes met when it matches.
type waiter struct {
	re  *regexp.Regexp
	met chan struct{}

	mu   sync.Mutex
	all  bytes.Buffer
	once sync.Once
}

func (w *waiter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(b)
	if w.re.Match(w.all.Bytes()) {
		w.once.Do(func() { close(w.met) })
	}
	return len(b), nil
}

func (w *waiter) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.all.Bytes())
}
