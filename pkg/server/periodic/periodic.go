// SPDX-License-Identifier: Apache-2.0

// Package periodic answers one question: how is the server's upkeep repeated? It does not
// start goroutines; whoever calls Run owns one.
package periodic

import (
	"context"
	"time"
)

// Run calls f once in every interval, the first time after one, until ctx is done, and
// returns nil then. A call that takes longer than the interval delays the next.
func Run(ctx context.Context, every time.Duration, f func(context.Context)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			f(ctx)
		}
	}
}
