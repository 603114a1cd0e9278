// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// heldVerb is how diagon starts a command that must not run before it is watched.
const heldVerb = "__exec"

// gateFile is where the held process waits for one byte: the first of exec.Cmd.ExtraFiles.
const gateFile = 3

// Exit statuses of a command that could not be started, as in a shell.
const (
	exitCannotExecute = 126
	exitNoCommand     = 127
)

// newHeldCommand is the child's half: it waits for the gate to open and then becomes
// the command. A gate that closes means that nobody wants it any more.
func newHeldCommand() *cobra.Command {
	return &cobra.Command{
		Use:                heldVerb + " PATH ARGV...",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s: is for diagon's own use", heldVerb)
			}
			gate := os.NewFile(gateFile, "gate")
			if _, err := io.ReadFull(gate, make([]byte, 1)); err != nil {
				return exitStatus(exitCannotExecute)
			}
			gate.Close()
			err := unix.Exec(args[0], args[1:], os.Environ())
			fmt.Fprintf(os.Stderr, "diagon: record: start %s: %v\n", args[0], err)
			return exitStatus(exitCannotExecute)
		},
	}
}

// startStatus is the exit status for a command that could not be started.
func startStatus(err error) exitStatus {
	if errors.Is(err, fs.ErrPermission) {
		return exitCannotExecute
	}
	return exitNoCommand
}

// A held is a command that has a process and has not begun.
type held struct {
	name string
	cmd  *exec.Cmd
	gate *os.File
	done chan struct{} // closed once the process has ended; err is set then
	err  error
}

// hold starts argv as far as its exec.
func hold(argv []string) (*held, error) {
	path, err := exec.LookPath(argv[0])
	if errors.Is(err, exec.ErrDot) { // found in the working directory by the caller's own PATH: as in a shell
		err = nil
	}
	if err != nil {
		var inner *exec.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("command %s: %w", argv[0], err)
	}
	waits, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer waits.Close()

	cmd := exec.Command("/proc/self/exe", append([]string{heldVerb, path}, argv...)...)
	cmd.Args[0] = "diagon"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{waits}
	if err := cmd.Start(); err != nil {
		gate.Close()
		return nil, fmt.Errorf("command %s: %w", argv[0], err)
	}
	h := &held{name: argv[0], cmd: cmd, gate: gate, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.err = cmd.Wait()
	}()
	return h, nil
}

// release lets the command begin.
func (h *held) release() {
	h.gate.Write([]byte{1}) // fails only when the process was killed, which done will tell
	h.gate.Close()
}

// abandon ends the process without the command having begun, or does nothing once it has.
func (h *held) abandon() { h.gate.Close() }

// status is the command's exit status once done is closed; a signal counts as in a shell.
func (h *held) status() int {
	state := h.cmd.ProcessState
	if state == nil {
		return exitFailure
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
