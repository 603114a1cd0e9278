// SPDX-License-Identifier: Apache-2.0

// Command agent measures what the agent costs on this machine: it starts a server, an agent
// and six busy programs, waits, and prints a table. Run it as root, with nothing else going on:
//
//	make bench-agent
//
// Every number comes from where it is kept: the agent's /metrics, /proc, the kernel's BPF statistics.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "folder of diagon and diagon-server")
	rate := flag.Int("rate", 19, "samples a second on each CPU")
	warm := flag.Duration("warm", 30*time.Second, "before the steady state is measured")
	steady := flag.Duration("steady", 90*time.Second, "length of the steady state")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *bin, *rate, *warm, *steady); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, rate int, warm, steady time.Duration) error {
	dir, err := os.MkdirTemp("", "diagon-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The kernel times BPF programs only while asked to; that itself costs about 25 ns a run.
	restore, err := countBPF()
	if err != nil {
		return err
	}
	defer restore()

	programs, err := startWorkloads(ctx, dir)
	if err != nil {
		return err
	}
	defer stopAll(programs)

	server, err := start(ctx, nil, filepath.Join(bin, "diagon-server"), "--http", serverHTTP, "--grpc", serverGRPC, "--data", filepath.Join(dir, "server"))
	if err != nil {
		return err
	}
	defer stopAll([]*exec.Cmd{server})
	if err := waitFor(ctx, "http://"+serverHTTP+"/readyz"); err != nil {
		return err
	}
	agent, err := start(ctx, nil, filepath.Join(bin, "diagon"), "agent", "--channel", serverGRPC+"/diagnostics", "--http", agentHTTP,
		"--data", filepath.Join(dir, "agent"), "--rate", fmt.Sprint(rate))
	if err != nil {
		return err
	}
	defer stopAll([]*exec.Cmd{agent})

	first, err := firstSample(ctx)
	if err != nil {
		return err
	}
	if !sleep(ctx, warm) {
		return ctx.Err()
	}
	from, err := read(ctx)
	if err != nil {
		return err
	}
	if !sleep(ctx, steady) {
		return ctx.Err()
	}
	to, err := read(ctx)
	if err != nil {
		return err
	}
	printTable(rate, first, from, to)
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// countBPF turns the kernel's BPF statistics on, and back to what they were.
func countBPF() (restore func(), err error) {
	const sysctl = "/proc/sys/kernel/bpf_stats_enabled"
	old, err := os.ReadFile(sysctl)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(sysctl, []byte("1"), 0o644); err != nil {
		return nil, err
	}
	return func() { _ = os.WriteFile(sysctl, old, 0o644) }, nil
}
