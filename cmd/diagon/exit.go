// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"diagon.dev/diagon/cmd/diagon/internal/text"
	"diagon.dev/diagon/pkg/collector"
)

// Exit statuses. `diagon record -- command` passes the command's own through instead.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitUnavailable = 3 // this host cannot do it; `diagon doctor` says why
)

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitStatus ends the program with that status. There is nothing more to say: it has been said.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// report writes an error as one line and returns the exit status for it.
func report(w io.Writer, err error) int {
	var usage usageError
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w, "diagon: interrupted")
		return exitFailure
	}
	fmt.Fprintln(w, "diagon:", text.Printable(strings.Join(strings.Fields(err.Error()), " ")))
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, collector.ErrUnavailable):
		return exitUnavailable
	}
	return exitFailure
}
