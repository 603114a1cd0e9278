// SPDX-License-Identifier: Apache-2.0

// Package gosym names addresses in Go programs from the table that their own
// runtime uses, pclntab, which strip leaves in place: function, file, line, and
// the calls that were inlined there.
//
// It is not debug/gosym, which wants the whole table in memory (it passes 140 MB
// in large programs), takes it at its word, and knows no inlined calls. A Table
// holds one number per 64 functions and reads the rest when asked.
//
// Programs of Go 1.18 and later are read, inlined calls of 1.20 and later.
//
// Format: cmd/link/internal/ld/pcln.go, runtime/symtab.go, runtime/symtabinl.go and
// debug/gosym/pclntab.go in Go's source; the module data is runtime.moduledata.
package gosym
