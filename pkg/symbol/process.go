// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/procmaps"
	"diagon.dev/diagon/pkg/profile"
)

const (
	maxMappings = 16 << 10 // of code, per process

	// checkAfter is how long a look at a process is believed. An exec in between
	// is noticed at the next sample.
	checkAfter = 10 * time.Millisecond

	// Maps are read again when an address lies in none of them, first after
	// rereadFirst, then twice as long after each reading that did not help, up to
	// rereadLast; and every rereadLast anyway, in case something else was loaded to
	// the same place. Reading takes at most one part in rereadShare of the time.
	rereadFirst = 20 * time.Millisecond
	rereadLast  = 10 * time.Second
	rereadShare = 100
)

// A process is what is remembered of one.
//
// Its identity is the open directory in /proc, which leads nowhere once the process
// has ended, whoever has its number then. An exec keeps it, and the start time as well; it is seen
// by the program file having changed. A program that executes itself again
// lies elsewhere in memory, is not found in the old maps, and they are read again; where
// it lies at the same place, its names are the same.
type process struct {
	pid     int
	serial  uint64 // owner of its addresses in Symbolizer.places; a new one forgets them all
	dir     *os.File
	pending *task  // a reading of the image that has not come back
	next    *image // what pending will have filled

	image
	slots   []slot // by index in table.Mappings
	jit     *jit   // nil until code without a file was seen
	dead    bool
	used    time.Time
	checked time.Time // last seen to run this image
	read    time.Time // maps read
	reread  time.Time // not before
	backoff time.Duration

	// since is when the image was first seen, if another one was seen before, and
	// previous is that one's mappings.
	since    time.Time
	previous *procmaps.Table
}

// An image is what a process executes.
type image struct {
	exe   exeID
	table procmaps.Table
	took  time.Duration
	err   error
}

// exeID is the program's file; zero when this host does not let it be seen.
type exeID struct {
	major, minor uint32
	inode        uint64
}

// A slot is the file behind one mapping.
type slot struct {
	object  *object
	pending *task
	result  *loaded
	failed  bool // until the maps are read again
}

type loaded struct {
	object *object
	err    error
}

// openProcess opens a process's directory.
func openProcess(proc string, pid int) (*os.File, error) {
	fd, err := unix.Open(filepath.Join(proc, strconv.Itoa(pid)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "process"), nil
}

// readExe asks for a process's program without asking the file system it lies on.
func readExe(dir *os.File) (id exeID, err error) {
	err = handle(dir, func(fd int) error {
		var st unix.Statx_t
		if err := unix.Statx(fd, "exe", unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st); err != nil {
			return err
		}
		id = exeID{st.Dev_major, st.Dev_minor, st.Ino}
		return nil
	})
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return exeID{}, nil // maps may be readable all the same
	}
	return id, err
}

// readImage reads what a process executes. It may block on the process's memory lock.
func readImage(dir *os.File) image {
	start := time.Now()
	var im image
	for range 3 {
		if im.exe, im.err = readExe(dir); im.err != nil {
			return im
		}
		if im.table, im.err = readMaps(dir); im.err != nil {
			return im
		}
		after, err := readExe(dir)
		if err != nil {
			im.err = err
			return im
		}
		if after == im.exe { // no exec while reading
			break
		}
	}
	im.took = time.Since(start)
	return im
}

func readMaps(dir *os.File) (procmaps.Table, error) {
	var f *os.File
	err := handle(dir, func(fd int) error {
		maps, err := unix.Openat(fd, "maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			f = os.NewFile(uintptr(maps), "maps")
		}
		return err
	})
	if err != nil {
		return procmaps.Table{}, err
	}
	defer f.Close()
	table, err := procmaps.Executable(f, maxMappings)
	if err == nil && len(table.Mappings) == 0 {
		return table, unix.ESRCH // a process that has given up its memory
	}
	return table, err
}

// adopt takes a new image. What was known stays known as far as the mappings
// are the same.
func (p *process) adopt(im image, now time.Time, serial func() uint64) {
	kept := im.exe == p.exe && len(p.table.Mappings) > 0
	slots := make([]slot, len(im.table.Mappings))
	same := 0
	for i := range im.table.Mappings {
		if !kept {
			break
		}
		m := &im.table.Mappings[i]
		for same < len(p.table.Mappings) && p.table.Mappings[same].Start < m.Start {
			same++
		}
		if same < len(p.table.Mappings) && p.table.Mappings[same] == *m && !p.slots[same].failed {
			slots[i] = p.slots[same]
		}
	}
	if !kept || !contains(&im.table, p) {
		p.serial = serial()
	}
	if im.exe != p.exe && len(p.table.Mappings) > 0 {
		previous := p.table
		p.since, p.previous, p.jit = now, &previous, nil
	}
	p.image, p.slots = im, slots
	p.read, p.checked = now, now
}

// contains reports whether all that p knew holds in a newer table.
func contains(newer *procmaps.Table, p *process) bool {
	at := 0
	for i := range p.table.Mappings {
		m := &p.table.Mappings[i]
		for at < len(newer.Mappings) && newer.Mappings[at].Start < m.Start {
			at++
		}
		if at == len(newer.Mappings) || newer.Mappings[at] != *m || p.slots[i].failed {
			return false
		}
	}
	return true
}

// mayReread says whether maps may be read again because of an unknown address,
// and readAgain that they were, and whether it helped.
func (p *process) mayReread(now time.Time) bool { return !p.dead && !now.Before(p.reread) }

func (p *process) readAgain(now time.Time, helped bool) {
	p.backoff = min(2*p.backoff, rereadLast)
	if helped || p.backoff == 0 {
		p.backoff = rereadFirst
	}
	p.reread = now.Add(max(p.backoff, p.took*rereadShare))
}

// stale says that maps are to be read again in any case.
func (p *process) stale(now time.Time) bool {
	return !p.dead && now.Sub(p.read) > max(rereadLast, p.took*rereadShare)
}

// ran reports whether a stack taken at a time was taken of this image: a
// sample is looked at up to a second after it was taken, and the process may have
// become another one in between. A stack that only fits into this image is this one's.
func (p *process) ran(at time.Time, stack profile.Stack) bool {
	if p.since.IsZero() || at.IsZero() || !at.Before(p.since) {
		return true
	}
	return p.previous != nil && fits(&p.table, stack) && !fits(p.previous, stack)
}

func fits(t *procmaps.Table, stack profile.Stack) bool {
	for _, f := range stack {
		if f.Realm == profile.RealmUser && f.Location == nil && t.Find(f.Address) == nil {
			return false
		}
	}
	return true
}
