// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	driver "github.com/duckdb/duckdb-go/v2"
	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/server/store"
)

// errGone means that a partition was dropped between being found and being used.
var errGone = errors.New("partition is gone")

// isFull reports whether an error of DuckDB's comes from a disk without room.
// DuckDB passes on the text of the system's error and not its number.
func isFull(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	for _, errno := range []syscall.Errno{unix.ENOSPC, unix.EDQUOT} {
		if errors.Is(err, errno) || strings.Contains(strings.ToLower(text), errno.Error()) {
			return true
		}
	}
	return false
}

// isDamage reports whether an error says that a file's bytes are not what was
// written. Whatever might pass, or might be a fault of the host or of the
// question, is not damage: a partition set aside by mistake is data lost.
func isDamage(err error) bool {
	if err == nil || isFull(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var d *driver.Error
	if errors.As(err, &d) && d.Type == driver.ErrorTypeSerialization {
		return true
	}
	text := err.Error()
	for _, sign := range []string{
		"Corrupt database file",             // a block's checksum is wrong
		"computed checksum",                 // a log entry's
		"Corrupt WAL",                       //
		"not a valid DuckDB database file",  // no magic
		"exceeds available size",            // a length beyond the file
		"Could not read all bytes",          // a file that ends early
		"Could not read enough bytes",       //
		"Failed to deserialize",             //
		"Failure while replaying WAL file",  //
		"Cannot open file in its current f", // a header that makes no sense
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// full wraps what went wrong in ErrFull and says what to do.
func (s *Store) full(why error) error {
	return fmt.Errorf("%w: %s: %w: free disk space or lower the retention", store.ErrFull, s.cfg.Dir, why)
}

// roomLeft says in an error when the disk has less room than the floor.
func (s *Store) roomLeft() error {
	if s.cfg.FreeBytes == 0 {
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(s.cfg.Dir, &fs); err != nil {
		return fmt.Errorf("duckdb: ask for free space of %s: %w", s.cfg.Dir, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < s.cfg.FreeBytes {
		return s.full(fmt.Errorf("%d bytes are free, %d are kept free", free, s.cfg.FreeBytes))
	}
	return nil
}
