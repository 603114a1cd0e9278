// SPDX-License-Identifier: Apache-2.0

// Package oncpu answers one question: which code is each CPU running?
//
// The kernel half is bpf/oncpu.bpf.c. This half loads it, decodes what it
// reports, and knows nothing of where samples go next.
package oncpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"diagon.dev/diagon/pkg/collector"
)

// Config is all that an operator decides about this collector. A running
// collector keeps the one it was made with: a new rate is a new Collector,
// which collector.Runner puts in the old one's place.
type Config struct {
	Hz    int           // firings per second on each CPU, 1 to 999
	Drain time.Duration // between two readings of the ring, 10 ms to 10 s
	Idle  bool          // sample the idle task too
	PIDs  []int         // sample only these processes, as the agent's /proc counts them, and what they fork from then on; empty: all
}

// DefaultConfig samples at a prime rate, so as not to march in step with timers.
// To wake up for a drain costs as much as to decode a hundred samples.
func DefaultConfig() Config { return Config{Hz: 19, Drain: time.Second} }

// maxPIDs is far below the room in the kernel's set, which must also hold their children.
const maxPIDs = 1024

// Validate names the first field that is out of its bounds.
func (c Config) Validate() error {
	if c.Hz < 1 || c.Hz > 999 {
		return fmt.Errorf("hz: %d is not between 1 and 999", c.Hz)
	}
	if c.Drain < 10*time.Millisecond || c.Drain > 10*time.Second {
		return fmt.Errorf("drain: %v is not between 10ms and 10s", c.Drain)
	}
	if len(c.PIDs) > maxPIDs {
		return fmt.Errorf("pids: %d are more than %d", len(c.PIDs), maxPIDs)
	}
	for _, pid := range c.PIDs {
		if pid < 1 || pid > 1<<22 {
			return fmt.Errorf("pids: %d is no process", pid)
		}
	}
	return nil
}

// The places where samples are lost.
const (
	LostRing   = "ring"   // the ring was full
	LostFollow = "follow" // a chosen process had more children than the kernel's set has room for: one count a child
	LostDecode = "decode" // the record could not be read
)

// cpuScan is how often CPUs that came or went are looked for.
const cpuScan = 10 * time.Second

// A Collector samples every CPU. What it drops it reports to lost.
type Collector struct {
	cfg       Config
	lost      collector.Lost
	ringBytes uint32

	attached     chan struct{}
	markAttached sync.Once

	use use
}

// New makes a collector out of a valid cfg.
func New(cfg Config, lost collector.Lost) *Collector {
	return &Collector{
		cfg:       cfg,
		lost:      lost,
		ringBytes: ringBytes(cfg),
		attached:  make(chan struct{}),
	}
}

// Name is "oncpu".
func (c *Collector) Name() string { return "oncpu" }

// Attached is closed once Run samples for the first time. Whoever wants a
// command's life from its first instruction starts it held back, chooses its
// PID, calls Run, and lets it go when Attached is closed.
func (c *Collector) Attached() <-chan struct{} { return c.attached }

// Kernel says what the BPF programs cost so far.
func (c *Collector) Kernel() collector.KernelUse { return c.use.read() }

// Run samples until ctx is done, hands over what the ring still holds, and
// returns nil with every kernel object released. It may be called again.
func (c *Collector) Run(ctx context.Context, out collector.Sink) error {
	if ctx.Err() != nil {
		return nil
	}
	k, err := load(c.cfg, c.ringBytes)
	if err != nil {
		return fmt.Errorf("oncpu: load: %w", unavailable(err))
	}
	defer k.Close()
	defer c.use.watch(k)()

	events, err := k.attach(c.cfg)
	if err != nil {
		return fmt.Errorf("oncpu: attach: %w", unavailable(err))
	}
	defer events.Close()

	ring, err := ringbuf.NewReader(k.Samples)
	if err != nil {
		return fmt.Errorf("oncpu: open ring: %w", err)
	}
	defer ring.Close()

	c.markAttached.Do(func() { close(c.attached) })
	d := newDecoder(c.cfg.Hz)
	drain, scan := time.NewTicker(c.cfg.Drain), time.NewTicker(cpuScan)
	defer drain.Stop()
	defer scan.Stop()
	for {
		select {
		case <-ctx.Done():
			events.Close()
			return c.drain(k, ring, d, out)
		case <-drain.C:
			if err := c.drain(k, ring, d, out); err != nil {
				return err
			}
		case <-scan.C:
			if err := events.matchOnline(); err != nil {
				return fmt.Errorf("oncpu: attach: %w", err)
			}
		}
	}
}

// drain takes what the ring holds and waits for nothing.
func (c *Collector) drain(k *kernel, ring *ringbuf.Reader, d *decoder, out collector.Sink) error {
	if err := k.reportLost(c.lost); err != nil {
		return fmt.Errorf("oncpu: read losses: %w", err)
	}
	wall, err := wallClockOffset()
	if err != nil {
		return fmt.Errorf("oncpu: %w", err)
	}
	d.wall = wall

	ring.SetDeadline(time.Now())
	var rec ringbuf.Record
	for {
		err := ring.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("oncpu: read ring: %w", err)
		}

		s, err := d.decode(rec.RawSample)
		if err != nil {
			c.lost(LostDecode, 1)
			continue
		}
		out.Put(s)
	}
}
