// SPDX-License-Identifier: Apache-2.0

// Gowork prints one of its own stacks, as its runtime names it, and waits.
package main

import (
	"fmt"
	"os"
	"runtime"
)

type queue[T any] struct{ held []T }

//go:noinline
func (q *queue[T]) drain(each func()) {
	for range q.held {
		each()
	}
}

func inlined(q *queue[int]) { q.drain(report) }

//go:noinline
func outer() {
	func() {
		q := &queue[int]{held: []int{1}}
		inlined(q)
	}()
}

// report prints "PHYSICAL PC FUNCTION FILE:LINE" for each call; PHYSICAL is true when a new
// machine frame begins.
func report() {
	pcs := make([]uintptr, 64)
	pcs = pcs[:runtime.Callers(1, pcs)]
	physical := true
	frames := runtime.CallersFrames(pcs)
	for _, pc := range pcs {
		f, _ := frames.Next()
		fmt.Println(physical, pc, f.Function, fmt.Sprintf("%s:%d", f.File, f.Line))
		physical = f.Func != nil
	}
	fmt.Println("end")
}

func main() {
	outer()
	os.Stdin.Read(make([]byte, 1))
}
