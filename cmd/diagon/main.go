// SPDX-License-Identifier: Apache-2.0

// Command diagon is the agent of a node, and a person's tool: it records, watches, examines
// this host, and asks a diagon-server.
package main

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() { os.Exit(run(os.Args)) }

// run does what the arguments say and returns the exit status.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	root := newRootCommand()
	root.SetArgs(arguments(args))
	return report(os.Stderr, root.ExecuteContext(ctx))
}
