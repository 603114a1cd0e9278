// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// deepC calls itself `depth` times, over functions of its own page each, with frame pointers.
const deepC = `
#include <stdint.h>
#include <stdlib.h>
static volatile uint64_t sink;
void work(int n);
__attribute__((noinline)) void odd(int n) { if (n) work(n - 1); else for (int i = 0; i < 100000; i++) sink += i; sink++; }
__attribute__((noinline)) void work(int n) { if (n) odd(n - 1); else for (int i = 0; i < 100000; i++) sink += i; sink++; }
int main(int argc, char **argv) { for (;;) work(atoi(argv[1])); }
`

// callsC spends its time in system calls.
const callsC = `
#include <unistd.h>
#include <fcntl.h>
int main(void) { char b[4096]; int z = open("/dev/zero", O_RDONLY); for (;;) if (read(z, b, sizeof b) < 0) return 1; }
`

const goProgram = `package main

import "sort"

func main() {
	x := make([]int, 4096)
	for i := uint32(1); ; i++ {
		for j := range x {
			i = i*1664525 + 1013904223
			x[j] = int(i)
		}
		sort.Ints(x)
	}
}
`

// startWorkloads starts six programs that are always busy: C 20 and 100 deep, C in system
// calls, Go, Python, node.
func startWorkloads(ctx context.Context, dir string) ([]*exec.Cmd, error) {
	deep, err := build(ctx, dir, "deep.c", deepC, "gcc", "-O0", "-o")
	if err != nil {
		return nil, err
	}
	calls, err := build(ctx, dir, "calls.c", callsC, "gcc", "-O0", "-o")
	if err != nil {
		return nil, err
	}
	sorter, err := build(ctx, dir, "sorter.go", goProgram, "go", "build", "-o")
	if err != nil {
		return nil, err
	}
	var all []*exec.Cmd
	for _, command := range [][]string{
		{deep, "20"},
		{deep, "100"},
		{calls},
		{sorter},
		{"python3", "-c", "def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)\nwhile True: fib(25)"},
		{"node", "-e", "function fib(n) { return n < 2 ? n : fib(n-1) + fib(n-2) } for (;;) fib(25)"},
	} {
		cmd, err := start(ctx, []string{"GOMAXPROCS=1"}, command[0], command[1:]...)
		if err != nil {
			stopAll(all)
			return nil, err
		}
		all = append(all, cmd)
	}
	return all, nil
}

// build compiles a source; the compiler's last argument takes the program's path.
func build(ctx context.Context, dir, name, source string, compiler ...string) (string, error) {
	file := filepath.Join(dir, name)
	program := file + ".bin"
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		return "", err
	}
	args := append(append([]string{}, compiler[1:]...), program, file)
	if out, err := exec.CommandContext(ctx, compiler[0], args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return program, nil
}
