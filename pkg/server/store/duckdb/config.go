// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Config is all that an operator decides about the store.
type Config struct {
	Dir            string           // folder of the store; made when missing. One process at a time.
	MemoryBytes    int64            // DuckDB's buffers; the dictionaries of DictionaryFrames come on top
	Threads        int              // that DuckDB may use for a query
	PartitionBytes int64            // a partition larger than this is followed by another of the same hour
	MaxAttached    int              // partition files held open when nobody asks for them
	FreeBytes      int64            // Append is refused while the disk has less room than this; 0 does not look
	DictionaryIDs  int              // identifiers remembered per partition being written, so that its dictionaries are written once
	DictionaryKeep int              // frames of stacks kept between questions
	QueryTimeout   time.Duration    // bound of a question whose context has none
	Now            func() time.Time // the clock
}

// DefaultConfig fits a server with a gigabyte of memory.
func DefaultConfig(dir string) Config {
	return Config{
		Dir:            dir,
		MemoryBytes:    512 << 20,
		Threads:        runtime.GOMAXPROCS(0),
		PartitionBytes: 1 << 30,
		MaxAttached:    128,
		FreeBytes:      128 << 20,
		DictionaryIDs:  1 << 20,
		DictionaryKeep: 1 << 21,
		QueryTimeout:   time.Minute,
		Now:            time.Now,
	}
}

// minMemory is what DuckDB needs to write one partition at all.
const minMemory = 64 << 20

// Validate names the first field that makes no sense.
func (c Config) Validate() error {
	for _, check := range []struct {
		bad  bool
		what string
	}{
		{c.Dir == "", "Dir is empty"},
		{c.MemoryBytes < minMemory, fmt.Sprintf("MemoryBytes is %d, at least %d are needed", c.MemoryBytes, minMemory)},
		{c.Threads < 1, "Threads must be 1 or more"},
		{c.PartitionBytes < 1<<20, "PartitionBytes must be 1 MiB or more"},
		{c.MaxAttached < 1, "MaxAttached must be 1 or more"},
		{c.FreeBytes < 0, "FreeBytes is negative"},
		{c.DictionaryIDs < 1, "DictionaryIDs must be 1 or more"},
		{c.DictionaryKeep < 1, "DictionaryKeep must be 1 or more"},
		{c.QueryTimeout <= 0, "QueryTimeout must be positive"},
		{c.Now == nil, "Now is nil"},
	} {
		if check.bad {
			return errors.New("duckdb: config: " + check.what)
		}
	}
	return nil
}
