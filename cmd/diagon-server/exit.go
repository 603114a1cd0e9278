// SPDX-License-Identifier: Apache-2.0

package main

import "errors"

// Exit statuses, as diagon's.
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func exitStatus(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}
