// SPDX-License-Identifier: Apache-2.0

// Package query answers questions about stored profiles: over HTTP, as
// docs/http-api.md writes it.
//
// It reads what was asked (time.go, selector.go, params.go), asks the store, and shapes
// the answer: a flame graph, a table, folded text, a speedscope file, a pprof file. The
// shapes are pure functions of store.Weights. Where the data lies and how it is
// found is the store's business; nodes and captures are answered elsewhere.
package query
