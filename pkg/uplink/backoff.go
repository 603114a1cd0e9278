// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A backoff says how long to wait before the next attempt: exponential with full
// jitter, so that a fleet that lost its server does not come back as one.
type backoff struct {
	min, max time.Duration
	bound    time.Duration // of the next wait; 0 before the first
}

// maxAsked bounds what a server can ask for: beyond it, it is more likely a mistake.
const maxAsked = time.Hour

// next answers how long to wait after err. A server that named a time is given at
// least that, and a tenth more at random. An error that waiting does not cure is tried at
// the longest interval.
func (b *backoff) next(err error) time.Duration {
	switch {
	case b.bound == 0:
		b.bound = b.min
	case isFinal(err):
		b.bound = b.max
	default:
		b.bound = min(2*b.bound, b.max)
	}
	wait := rand.N(b.bound) + 1
	if asked := min(askedDelay(err), maxAsked); asked > 0 {
		wait = max(wait, asked+rand.N(asked/10+1))
	}
	return wait
}

// reset begins again at the shortest wait; call it once an attempt has held.
func (b *backoff) reset() { b.bound = 0 }

// isFinal reports whether the server said that the same request will fail again.
func isFinal(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented,
		codes.FailedPrecondition, codes.NotFound, codes.AlreadyExists, codes.OutOfRange:
		return true
	}
	return errors.Is(err, errWrongPeer)
}

// A retryAfterError is the server's wish to be left alone for a while.
type retryAfterError struct {
	delay  time.Duration
	reason string
}

func (e *retryAfterError) Error() string {
	return fmt.Sprintf("the backend asks to come back in %v: %s", e.delay, e.reason)
}

// askedDelay is how long the server asked to wait: by a RetryAfter message or by
// google.rpc.RetryInfo in the status; 0 when it did not say.
func askedDelay(err error) time.Duration {
	var asked *retryAfterError
	if errors.As(err, &asked) {
		return asked.delay
	}
	var st interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &st) {
		return 0
	}
	for _, detail := range st.GRPCStatus().Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(0, info.GetRetryDelay().AsDuration())
		}
	}
	return 0
}

// sleep waits for d and reports whether ctx still holds.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
