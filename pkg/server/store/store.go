// SPDX-License-Identifier: Apache-2.0

// Package store says what the server keeps and what can be asked of it.
//
// It holds the Store interface, its words, and (in storetest) the contract suite
// that every engine passes. Engines live in folders of their own: duckdb.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"diagon.dev/diagon/pkg/profile"
)

// A Batch is one window of one node, or the profile of one capture.
// Its identity is (Node, BootID, Sequence).
type Batch struct {
	Node         string
	BootID       string
	Sequence     uint64
	AgentVersion string
	Capture      string // id of the capture the samples were taken for; "" for the always-on profile
	profile.Batch
}

// A Selection says which part of the stored data a question is about.
type Selection struct {
	From, To time.Time         // From inclusive, To exclusive
	Matchers []*labels.Matcher // as in Prometheus; they match the labels of a sample or of a reading
	Capture  string            // "" selects the always-on profile
}

// A Weight is a stack and what it adds up to in a Selection.
type Weight struct {
	Stack profile.Stack // leaf first, with Locations; equal places share one *profile.Location
	Value int64
}

// Weights is the answer to a question about stacks.
type Weights struct {
	Stacks []Weight
	Losses []NodeLoss // what was lost while these samples were taken; only matchers of "node" select among them
	Period int64      // nanoseconds that one CPU sample stands for; 0 when unknown or mixed
}

// A NodeLoss is a loss and the node it happened on.
type NodeLoss struct {
	Node string
	profile.Loss
}

// A Series is one line of a timeline.
type Series struct {
	Metric string
	Labels profile.Labels
	Points []Point
}

// A Point is the mean of a series over one step.
type Point struct {
	Time  time.Time // start of the step
	Value float64
}

// Retention says how much is kept.
type Retention struct {
	Age   time.Duration // older partitions are dropped; 0 keeps all
	Bytes int64         // the oldest partitions are dropped until the store is smaller; 0 has no bound
}

// Store keeps batches and answers questions about them. Its methods may be called from
// several goroutines. Each honours its context's deadline.
type Store interface {
	// Append makes the batches durable, all or none; when it returns nil they
	// survive a crash. A batch that is held already is left out, so sending twice is
	// harmless. It returns an error that wraps ErrFull when there is no room: nothing is
	// stored then, what was there stays readable, and a later Append may succeed.
	Append(ctx context.Context, batches ...Batch) error

	// DurableSequence is the highest sequence held of a node's boot; 0 for none.
	DurableSequence(ctx context.Context, node, bootID string) (uint64, error)

	// Stacks adds up the values of t by stack. More than limit stacks are an
	// error that wraps ErrTooLarge.
	Stacks(ctx context.Context, t profile.Type, s Selection, limit int) (Weights, error)

	// Types lists the sample types that the selection holds.
	Types(ctx context.Context, s Selection) ([]profile.Type, error)

	// LabelNames lists the names of labels of samples in the selection, sorted.
	LabelNames(ctx context.Context, s Selection) ([]string, error)

	// LabelValues lists the values of a label of samples in the selection, sorted;
	// "node" also lists nodes that have readings only. The name "__name__" asks for the
	// metrics of readings. At most limit are
	// returned; cut says that there are more.
	LabelValues(ctx context.Context, name string, s Selection, limit int) (values []string, cut bool, err error)

	// Readings answers a timeline of a reading's metric, one point a step.
	Readings(ctx context.Context, metric string, s Selection, step time.Duration) ([]Series, error)

	// Rates answers the values of t per second, one point a step, added up over
	// all stacks that the selection holds, one series a node. It divides by the
	// part of the step that the node's batches cover, and says 0 where a node was idle.
	// Steps of both timelines begin at multiples of their length since the Unix epoch.
	Rates(ctx context.Context, t profile.Type, s Selection, step time.Duration) ([]Series, error)

	// Retain drops whole partitions, oldest first, and says how many bytes the
	// store takes afterwards on disk.
	Retain(ctx context.Context, r Retention, now time.Time) (bytes int64, err error)

	// Close writes out what is held and releases everything.
	Close() error
}

var (
	// ErrFull means there is no room on the disk.
	ErrFull = errors.New("store is full")
	// ErrTooLarge means that the answer exceeds the bound that was asked for.
	ErrTooLarge = errors.New("answer is too large")
)
