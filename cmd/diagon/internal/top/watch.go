// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"diagon.dev/diagon/pkg/agent"
	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/oncpu"
	"diagon.dev/diagon/pkg/profile"
)

// Config says how to watch.
type Config struct {
	Hz       int           // samples a second on each CPU, 1 to 999
	Interval time.Duration // between two tables, 200 ms to 1 min
	PIDs     []int         // only these processes and what they fork; empty: all
}

// DefaultConfig is quick enough for the eye and cheap enough to leave running.
func DefaultConfig() Config { return Config{Hz: 99, Interval: 2 * time.Second} }

// Validate names the field that is out of its bounds.
func (c Config) Validate() error {
	if c.Hz < 1 || c.Hz > 999 {
		return fmt.Errorf("rate: %d is not between 1 and 999", c.Hz)
	}
	if c.Interval < 200*time.Millisecond || c.Interval > time.Minute {
		return fmt.Errorf("interval: %v is not between 200ms and 1m", c.Interval)
	}
	return nil
}

// Watch samples until ctx is done and calls show with a table after each interval, from a
// goroutine of its own. Everything is released when it returns.
func Watch(ctx context.Context, cfg Config, log *slog.Logger, show func(Table)) error {
	var losses agent.Losses
	names, err := agent.OpenNames("/proc", losses.Lost, log)
	if err != nil {
		return err
	}
	defer names.Close()

	sampler := oncpu.DefaultConfig()
	sampler.Hz, sampler.PIDs = cfg.Hz, cfg.PIDs
	sampler.Drain = 50 * time.Millisecond // what is read late counts in the next interval
	cpu := oncpu.New(sampler, losses.Lost)

	// Windows end on the wall clock, so the first may be short: it goes with the next one.
	var short []agent.Window
	var seen atomic.Int64
	pipeline := agent.NewPipeline(names, &losses, cfg.Interval, func(w agent.Window) {
		windows := append(short, w)
		t := NewTable(windows...)
		if t.Length < cfg.Interval/2 {
			short = windows
			return
		}
		short = nil
		t.Seen = time.Duration(seen.Swap(0))
		if ctx.Err() == nil {
			show(t)
		}
	})

	piping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	piped := make(chan struct{})
	defer func() { stop(); <-piped }()
	go func() {
		defer close(piped)
		select {
		case <-cpu.Attached(): // loading the programs is not part of the first window
		case <-piping.Done():
		}
		pipeline.Run(piping)
	}()
	return cpu.Run(ctx, collector.SinkFunc(func(s profile.Sample) {
		seen.Add(s.Values[profile.CPU])
		pipeline.Put(s)
	}))
}
