// SPDX-License-Identifier: Apache-2.0

package agent

import "context"

// parts runs the agent's long-lived goroutines. Each is stopped and awaited by the function
// that its start returns, so a chain of defers stops them in reverse order.
type parts struct {
	ctx  context.Context
	fail context.CancelCauseFunc // ends the agent
}

func newParts(ctx context.Context, fail context.CancelCauseFunc) parts {
	return parts{ctx: ctx, fail: fail}
}

// start runs f until stop is called. An error of f ends the whole agent.
func (p parts) start(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil {
			p.fail(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
