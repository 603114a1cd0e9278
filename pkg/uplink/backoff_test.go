// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestBackoffDoublesItsBoundAndWaitsAnywhereBelow(t *testing.T) {
	b := backoff{min: time.Second, max: 5 * time.Minute}
	broken := errors.New("connection refused")
	shortest, longest := time.Hour, time.Duration(0)
	for i, bound := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		bound *= time.Second
		wait := b.next(broken)
		if wait <= 0 || wait > bound {
			t.Errorf("wait %d = %v, want one up to %v", i, wait, bound)
		}
	}
	for range 200 {
		wait := b.next(broken)
		shortest, longest = min(shortest, wait), max(longest, wait)
	}
	if shortest > time.Minute || longest < 4*time.Minute {
		t.Errorf("200 waits lie between %v and %v: that is no full jitter", shortest, longest)
	}
	b.reset()
	if wait := b.next(broken); wait > time.Second {
		t.Errorf("after a reset the first wait is %v", wait)
	}
}

func TestBackoffHonoursWhatTheServerAsks(t *testing.T) {
	info := func(d time.Duration) error {
		st, err := status.New(codes.Unavailable, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Errorf("register: %w", st.Err())
	}
	for _, tt := range []struct {
		name     string
		err      error
		min, max time.Duration
	}{
		{"a message", &retryAfterError{delay: 10 * time.Minute}, 10 * time.Minute, 11*time.Minute + 1},
		{"RetryInfo", info(10 * time.Minute), 10 * time.Minute, 11*time.Minute + 1},
		{"a negative time is none", info(-time.Hour), 1, time.Second},
		{"more than an hour is taken for an hour", info(1000 * time.Hour), time.Hour, 66*time.Minute + 1},
		{"no wish", status.Error(codes.Unavailable, "busy"), 1, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := backoff{min: time.Second, max: 5 * time.Minute}
			if wait := b.next(tt.err); wait < tt.min || wait > tt.max {
				t.Errorf("wait = %v, want %v to %v", wait, tt.min, tt.max)
			}
		})
	}
}
