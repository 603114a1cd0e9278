// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// memoryMark is the soft limit on Go's memory (runtime/debug.SetMemoryLimit): near it the
// collector works harder, above it nothing fails. What the database holds is not Go's and is
// bounded by --store-memory. ok is false where the environment has decided it, or nobody wants one.
func memoryMark(bytes int64, environ []string) (limit int64, ok bool) {
	inEnvironment := slices.ContainsFunc(environ, func(kv string) bool {
		value, found := strings.CutPrefix(kv, "GOMEMLIMIT=")
		return found && value != ""
	})
	return bytes, bytes > 0 && !inEnvironment
}
