// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"time"
)

// Config bounds what one question may cost.
type Config struct {
	MaxRange   time.Duration    // between from and to
	MaxStacks  int              // different stacks that one answer is made from
	MaxNodes   int              // that max_nodes may ask for
	MaxPoints  int              // of one series
	MaxSeries  int              // of one answer
	MaxValues  int              // of one label
	MaxQueries int              // answered at once, a large one counting as several; more are told to come again
	Timeout    time.Duration    // of one question
	Now        func() time.Time // the clock
}

// DefaultConfig fits a server for people and dashboards.
func DefaultConfig() Config {
	return Config{
		MaxRange:   31 * 24 * time.Hour,
		MaxStacks:  500_000,
		MaxNodes:   100_000,
		MaxPoints:  11_000,
		MaxSeries:  1_000,
		MaxValues:  100_000,
		MaxQueries: 16,
		Timeout:    30 * time.Second,
		Now:        time.Now,
	}
}

// Validate names the first field that makes no sense.
func (c Config) Validate() error {
	for _, field := range []struct {
		name string
		bad  bool
	}{
		{"MaxRange", c.MaxRange <= 0},
		{"MaxStacks", c.MaxStacks <= 0},
		{"MaxNodes", c.MaxNodes <= 0},
		{"MaxPoints", c.MaxPoints <= 0},
		{"MaxSeries", c.MaxSeries <= 0},
		{"MaxValues", c.MaxValues <= 0},
		{"MaxQueries", c.MaxQueries <= 0},
		{"Timeout", c.Timeout <= 0},
	} {
		if field.bad {
			return errors.New("query: config: " + field.name + " must be positive")
		}
	}
	if c.Now == nil {
		return errors.New("query: config: Now is nil")
	}
	return nil
}
