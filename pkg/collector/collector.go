// SPDX-License-Identifier: Apache-2.0

// Package collector says what a collector is, and runs collectors.
//
// A collector answers one question about this node and turns the answers into
// profile.Samples. It knows nothing of where they go next. The Runner starts
// collectors, times them and starts them again when they fail.
package collector

import (
	"context"
	"errors"

	"diagon.dev/diagon/pkg/profile"
)

// A Collector watches one thing.
//
// Run is called by one goroutine at a time. It returns nil when ctx is done, with
// every kernel object, file descriptor and goroutine of its own released, within
// a second; it may then be called again. It returns an error that wraps
// ErrUnavailable when this host cannot do what the collector needs: that is a
// fact about the host, reported and not retried. Any other error is a failure,
// and Run may be called again.
//
// Run hands samples to out from its own goroutine and never after it has returned.
type Collector interface {
	// Name is the collector's word in logs, metrics and flags: "oncpu".
	Name() string
	Run(ctx context.Context, out Sink) error
}

// A Sink takes samples. Put never blocks: what a sink cannot hold, it counts as
// lost. The sample, and what its Stack points to, belongs to the sink once Put is called.
// Put may be called from several goroutines.
type Sink interface {
	Put(profile.Sample)
}

// SinkFunc makes a Sink of a function.
type SinkFunc func(profile.Sample)

// Put calls f.
func (f SinkFunc) Put(s profile.Sample) { f(s) }

// A Lost function counts n things dropped at a place.
type Lost func(place string, n uint64)

// A Note function takes readings; like a Sink it never blocks.
type Note func(profile.Reading)

// ErrUnavailable means that this host cannot do what was asked: no such device,
// kernel feature or permission. The wrapping error says which.
var ErrUnavailable = errors.New("not available on this host")
