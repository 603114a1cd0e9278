// SPDX-License-Identifier: Apache-2.0

// Package host answers one question: what is this machine busy with, short of?
//
// It reads /proc each interval and turns it into readings: gauges as they are,
// counters as rates over the interval. It makes no samples. Metrics lists what
// there is.
package host

import (
	"context"
	"fmt"
	"time"

	"diagon.dev/diagon/pkg/collector"
)

// Config is all that an operator decides about this collector.
type Config struct {
	Interval time.Duration // between two readings, 1 s to 10 min
	Devices  int           // the busiest network devices, and as many disks, that are read one by one, 1 to 1,000
	Proc     string        // where the machine's procfs is mounted
}

// DefaultConfig reads often enough to set a machine's state beside a stack.
func DefaultConfig() Config {
	return Config{Interval: 5 * time.Second, Devices: 32, Proc: "/proc"}
}

// Validate names the first field that is out of its bounds.
func (c Config) Validate() error {
	if c.Interval < time.Second || c.Interval > 10*time.Minute {
		return fmt.Errorf("interval: %v is not between 1s and 10m", c.Interval)
	}
	if c.Devices < 1 || c.Devices > 1000 {
		return fmt.Errorf("devices: %d is not between 1 and 1000", c.Devices)
	}
	if c.Proc == "" {
		return fmt.Errorf("proc: no path")
	}
	return nil
}

// A Collector reads the machine's state.
type Collector struct {
	cfg  Config
	note collector.Note
}

// New makes a collector out of a valid cfg. Its readings go to note.
func New(cfg Config, note collector.Note) *Collector {
	return &Collector{cfg: cfg, note: note}
}

// Name is "host".
func (c *Collector) Name() string { return "host" }

// Run reads at once and then each interval until ctx is done. Rates begin with
// the second reading. It puts nothing into the sink.
func (c *Collector) Run(ctx context.Context, _ collector.Sink) error {
	proc, err := open(c.cfg.Proc)
	if err != nil {
		return fmt.Errorf("host: %w: %w", collector.ErrUnavailable, err)
	}

	tick := time.NewTicker(c.cfg.Interval)
	defer tick.Stop()
	var before snapshot
	for ctx.Err() == nil {
		now := proc.read(time.Now())
		for _, r := range readings(before, now, c.cfg.Devices) {
			c.note(r)
		}
		before = now

		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}
