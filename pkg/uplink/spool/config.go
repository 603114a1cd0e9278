// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Config bounds a spool.
type Config struct {
	Bytes   int64         // of all segments together; 1 MiB at least
	Age     time.Duration // batches older than this are dropped; 0 keeps them until another bound is met
	Batches int           // kept at most, so that the index in memory (40 bytes a batch) stays small

	// Floor answers a number that no batch of this boot can have had yet. It is
	// asked when the folder cannot tell.
	Floor func() uint64 `yaml:"-"`
	// Now is the clock that Age is measured by.
	Now func() time.Time `yaml:"-"`
}

// DefaultConfig holds a day of a busy node: a minute's batch is below 100 KiB.
func DefaultConfig() Config {
	return Config{
		Bytes:   256 << 20,
		Age:     24 * time.Hour,
		Batches: 100_000,
		Floor:   uptimeMillis,
		Now:     time.Now,
	}
}

const minBytes = 1 << 20

// Validate names the field that is out of its bounds.
func (c Config) Validate() error {
	if c.Bytes < minBytes {
		return fmt.Errorf("bytes: %d is below %d", c.Bytes, minBytes)
	}
	if c.Age < 0 {
		return fmt.Errorf("age: %v is negative", c.Age)
	}
	if c.Batches < 1 {
		return fmt.Errorf("batches: %d is below 1", c.Batches)
	}
	return nil
}

// segmentBytes is when a segment is full. What a full spool drops is a whole
// segment, so it is a small part of the whole.
func (c Config) segmentBytes() int64 { return min(c.Bytes/16, 4<<20) }

// maxRecord leaves room for the segment being written and the one before it.
func (c Config) maxRecord() int64 { return c.Bytes / 4 }

// uptimeMillis is the time since boot, sleep included. Within one boot it only
// grows, and by far more than one a batch, so a spool that has forgotten its
// numbers finds one here that was never used.
func uptimeMillis() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // not on any Linux since 2.6.39
	}
	return uint64(ts.Nano() / int64(time.Millisecond))
}
