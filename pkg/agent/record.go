// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/oncpu"
)

// A Recording is one look at this host, apart from the always-on profile: what `diagon
// record` and a capture of kind "cpu" take.
type Recording struct {
	Hz       int           // samples a second on each CPU
	PIDs     []int         // only these processes and what they fork from then on; empty: all
	Duration time.Duration // 0: until the context is done
	Ready    func()        // called once sampling has begun; nil: nobody waits
}

// Record samples for as long as the recording says and returns all that was seen as one
// window, with the losses of that time. It ends early, without an error, when ctx is done.
func Record(ctx context.Context, names Names, r Recording) (Window, error) {
	var losses Losses
	cfg := oncpu.DefaultConfig()
	cfg.Hz, cfg.PIDs = r.Hz, r.PIDs
	cfg.Drain = r.drain()
	if err := cfg.Validate(); err != nil {
		return Window{}, fmt.Errorf("record: %w", err)
	}
	cpu := oncpu.New(cfg, losses.Lost)

	var window Window
	pipeline := NewPipeline(names, &losses, 0, func(w Window) { window = w })
	parts := newParts(context.WithoutCancel(ctx), func(error) {}) // the pipeline has no way to fail
	stopPipeline := parts.start(func(ctx context.Context) error { pipeline.Run(ctx); return nil })
	defer stopPipeline()

	sampling, stopSampling := context.WithCancel(ctx)
	defer stopSampling()
	began := make(chan time.Time, 1)
	go func() {
		select {
		case <-cpu.Attached():
		case <-sampling.Done():
			return
		}
		began <- time.Now()
		if r.Ready != nil {
			r.Ready()
		}
		if r.Duration > 0 {
			time.AfterFunc(r.Duration, stopSampling)
		}
	}()
	err := cpu.Run(sampling, pipeline)
	stopSampling()
	stopPipeline()

	if errors.Is(err, collector.ErrUnavailable) {
		return Window{}, fmt.Errorf("record: %w; `diagon doctor` says what is missing", err)
	}
	if err != nil {
		return Window{}, fmt.Errorf("record: %w", err)
	}
	select {
	case window.Start = <-began: // loading the programs is not part of the profile
	default:
	}
	return window, nil
}

// drain is how often the ring is read: about 50 samples a CPU each time. Chosen processes
// may live for a moment only, and what has gone before it is read has no names.
func (r Recording) drain() time.Duration {
	if len(r.PIDs) > 0 {
		return 20 * time.Millisecond
	}
	every := 50 * time.Second / time.Duration(max(r.Hz, 1))
	return min(max(every, 50*time.Millisecond), 500*time.Millisecond)
}
