// SPDX-License-Identifier: Apache-2.0

// Command diagon-server takes profiles from agents, keeps them, and shows them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := command(os.Environ()).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "diagon-server:", err)
		os.Exit(exitStatus(err))
	}
}
