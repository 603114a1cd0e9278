// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/symbol/perfmap"
)

const (
	jitFirst = time.Second      // between two looks at a perf map that is there
	jitLast  = 30 * time.Second // and at one that is not
)

// A jit is what is known of the code that a process made at run time: its perf map.
type jit struct {
	serial  uint64 // owner of its addresses; a new one when the map has grown
	entries perfmap.Map
	pending *task  // whoever looks into entries while it is pending races it
	inner   int    // the process's number for itself; 0 when not read yet
	inode   uint64 // of the map
	grown   bool
	next    time.Time
	backoff time.Duration
}

var errOwner = errors.New("perf map belongs to another user")

// refresh reads what was appended to the map. It blocks on files.
func (j *jit) refresh(dir *os.File, now time.Time, limit int) error {
	if now.Before(j.next) {
		return nil
	}
	before := j.entries.Len()
	err := j.update(dir, limit)
	if j.entries.Len() != before {
		j.grown, j.backoff = true, 0
	}
	j.backoff = min(max(2*j.backoff, jitFirst), jitLast)
	if err == nil {
		j.backoff = jitFirst
	}
	j.next = now.Add(j.backoff)
	return err
}

func (j *jit) update(dir *os.File, limit int) error {
	f, id, err := j.open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if id.inode != j.inode {
		j.entries, j.inode = perfmap.Map{}, id.inode
	}
	return j.entries.Update(f, id.size, limit)
}

// lookup names an address. It blocks on files.
func (j *jit) lookup(dir *os.File, addr uint64) (perfmap.Symbol, bool, error) {
	if j.entries.Len() == 0 {
		return perfmap.Symbol{}, false, nil
	}
	f, id, err := j.open(dir)
	if err != nil {
		return perfmap.Symbol{}, false, err
	}
	defer f.Close()
	if id.inode != j.inode {
		return perfmap.Symbol{}, false, nil // the next refresh begins anew
	}
	return j.entries.Lookup(f, addr)
}

// open opens the map that a process wrote: in its own root, by the
// number that it has in its own PID namespace. Like perf, it takes only a file of
// the process's user or of root, because /tmp is everybody's.
func (j *jit) open(dir *os.File) (*os.File, fileID, error) {
	var owner, fileOwner unix.Stat_t
	pathFD := -1
	err := handle(dir, func(proc int) (err error) {
		if j.inner == 0 {
			if j.inner, err = innerPID(proc); err != nil {
				return err
			}
		}
		if err := unix.Fstat(proc, &owner); err != nil {
			return err
		}
		pathFD, err = openIn(proc, "/tmp/perf-"+strconv.Itoa(j.inner)+".map")
		return err
	})
	if err != nil {
		return nil, fileID{}, err
	}
	if err := unix.Fstat(pathFD, &fileOwner); err != nil {
		unix.Close(pathFD)
		return nil, fileID{}, err
	}
	if fileOwner.Uid != owner.Uid && fileOwner.Uid != 0 {
		unix.Close(pathFD)
		return nil, fileID{}, errOwner
	}
	return openRegular(pathFD)
}

// innerPID is the number that a process has for itself.
func innerPID(proc int) (int, error) {
	fd, err := unix.Openat(proc, "status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	f := os.NewFile(uintptr(fd), "status")
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if numbers, ok := strings.CutPrefix(lines.Text(), "NSpid:"); ok {
			fields := strings.Fields(numbers)
			if len(fields) == 0 {
				break
			}
			return strconv.Atoi(fields[len(fields)-1])
		}
	}
	return 0, fmt.Errorf("status: no NSpid")
}
