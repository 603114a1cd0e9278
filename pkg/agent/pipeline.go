// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync/atomic"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// A Pipeline takes what collectors see and hands on a batch a window:
//
//	collectors -> queue -> subject -> symbol -> window -> next
//
// Collectors put into the queue from their own goroutines and never wait; one
// goroutine, Run's, does the rest.
type Pipeline struct {
	samples  *queue[profile.Sample]
	readings *queue[profile.Reading]
	losses   *Losses
	stages   collector.Sink
	window   *window
	length   atomic.Int64 // nanoseconds
	next     func(Window)
}

// A Window is one batch and how many samples were added up in it.
type Window struct {
	profile.Batch
	Samples uint64
}

// Bounds of the queue before the stages: about 2 MiB, and a drain of 256 CPUs at
// 19 Hz three times over.
const (
	queuedSamples  = 8 << 10
	queuedReadings = 4 << 10
)

// NewPipeline joins the stages. Windows end at multiples of length on the wall clock, so that
// those of different nodes lie side by side, and early when they are full; with length 0
// there is one window, which ends with Run. next is called from Run's goroutine.
func NewPipeline(names Names, losses *Losses, length time.Duration, next func(Window)) *Pipeline {
	w := newWindow(time.Time{}, losses.Lost)
	p := &Pipeline{
		samples:  newQueue[profile.Sample](queuedSamples),
		readings: newQueue[profile.Reading](queuedReadings),
		losses:   losses,
		stages:   names.Subjects.Into(names.Symbols.Into(names.quality.Into(w))),
		window:   w,
		next:     next,
	}
	p.length.Store(int64(length))
	return p
}

// SetLength changes the length of windows, from the next one on.
func (p *Pipeline) SetLength(length time.Duration) { p.length.Store(int64(length)) }

// Put queues a sample, or counts it as lost at "queue". It is a collector.Sink.
func (p *Pipeline) Put(s profile.Sample) {
	if !p.samples.put(s) {
		p.losses.Lost("queue", 1)
	}
}

// Note queues a reading, or counts it as lost at "readings". It is a collector.Note.
func (p *Pipeline) Note(r profile.Reading) {
	if !p.readings.put(r) {
		p.losses.Lost("readings", 1)
	}
}

// Run passes samples on until ctx is done, then what is still queued. Nothing may be
// put once ctx is done.
func (p *Pipeline) Run(ctx context.Context) {
	seen := make(map[string]uint64)
	p.window.start = time.Now()
	flush := func() {
		batch, samples := p.window.take(time.Now())
		batch.Losses = p.losses.since(seen)
		p.next(Window{Batch: batch, Samples: samples})
	}
	var end <-chan time.Time
	live := p.length.Load() > 0
	if live {
		end = p.windowEnd(p.window.start)
	}
	process := func() {
		for _, r := range p.readings.take() {
			p.window.note(r)
		}
		for _, s := range p.samples.take() {
			p.stages.Put(s)
			if live && p.window.full() {
				flush()
			}
		}
	}
	for {
		select {
		case <-p.samples.waiting:
			process()
		case <-p.readings.waiting:
			process()
		case now := <-end:
			flush()
			end = p.windowEnd(now)
		case <-ctx.Done():
			process()
			flush()
			return
		}
	}
}

// windowEnd fires at the next multiple of the length on the wall clock.
func (p *Pipeline) windowEnd(now time.Time) <-chan time.Time {
	length := time.Duration(p.length.Load())
	return time.After(now.Truncate(length).Add(length).Sub(now))
}
