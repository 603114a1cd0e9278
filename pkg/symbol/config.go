// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"time"
)

// Config is all that an operator decides about naming.
type Config struct {
	// CacheBytes bounds the symbol tables held in memory; 1 MiB to 4 GiB. A
	// function costs 8 bytes, so a file with more than CacheBytes/16 of them is too
	// large and falls back to its smaller table, or to none.
	CacheBytes int64
	// Addresses bounds how many addresses are remembered, some 50 bytes each;
	// at least 1,024.
	Addresses int
	// Locations bounds how many places are remembered, some 250 bytes each; at
	// least 1,024.
	Locations int
	// Processes bounds how many processes are remembered, one file descriptor each; at least 1.
	Processes int
	// Wait is how long one sample waits for files and for /proc; 1 ms to 10 s.
	// What takes longer goes on without it and serves a later sample.
	Wait time.Duration
}

// DefaultConfig fits an agent that is to stay below 64 MiB.
func DefaultConfig() Config {
	return Config{
		CacheBytes: 24 << 20,
		Addresses:  96 << 10,
		Locations:  40 << 10,
		Processes:  512,
		Wait:       250 * time.Millisecond,
	}
}

// Validate names the field that is out of bounds.
func (c Config) Validate() error {
	for _, bound := range []struct {
		field        string
		is, low, top int64
	}{
		{"CacheBytes", c.CacheBytes, 1 << 20, 4 << 30},
		{"Addresses", int64(c.Addresses), 1024, 1 << 30},
		{"Locations", int64(c.Locations), 1024, 1 << 30},
		{"Processes", int64(c.Processes), 1, 1 << 20},
		{"Wait", int64(c.Wait), int64(time.Millisecond), int64(10 * time.Second)},
	} {
		if bound.is < bound.low || bound.is > bound.top {
			return fmt.Errorf("symbol: %s: %d is not between %d and %d", bound.field, bound.is, bound.low, bound.top)
		}
	}
	return nil
}

// functions is how many functions of one file are taken.
func (c Config) functions() int { return int(c.CacheBytes / 16) }

// Roots says where this host's trees are seen.
type Roots struct {
	Proc  string // procfs, in whose numbering samples name processes
	Sys   string // sysfs
	Files string // the root below which debug files of the host lie
}

// DefaultRoots are those of a program that runs on the host itself.
func DefaultRoots() Roots { return Roots{Proc: "/proc", Sys: "/sys", Files: "/"} }
