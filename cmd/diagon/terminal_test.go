// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal runs diagon on a terminal that shows what comes and never answers, as a serial
// console does. It returns all that was shown, and the exit status.
func onTerminal(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ours, theirs := openTerminal(t)
	program, err := exec.LookPath("diagon") // put into PATH by testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()

	var shown bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&shown, ours) // ends with EIO when the last holder of the other end has closed it
	}()
	patience := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer patience.Stop()
	cmd.Wait()
	<-read
	return shown.String(), cmd.ProcessState.ExitCode()
}

func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		first  string
	}{
		{"nothing is asked of the terminal", []string{"version"}, 0, "diagon "},
		{"a recording does not go to the screen", []string{"record", "-o", "-"}, exitFailure, "diagon: record: standard output is a terminal"},
		{"a profile of a server does not go to the screen", []string{"query", "--format", "pprof"}, exitFailure, "diagon: query: standard output is a terminal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shown, status := onTerminal(t, tt.args...)
			if !strings.HasPrefix(shown, tt.first) || status != tt.status {
				t.Errorf("status %d, want %d, and first %q:\n%q", status, tt.status, tt.first, shown)
			}
		})
	}
}
