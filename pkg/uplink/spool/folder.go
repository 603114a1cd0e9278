// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked means that another process spools into the same folder.
var ErrLocked = errors.New("in use by another process")

// A folder holds segments: on disk, or in memory where no disk may be written.
type folder interface {
	// list answers the names of all files.
	list() ([]string, error)
	// create makes a new file whose name survives a crash.
	create(name string) (file, error)
	open(name string) (file, error)
	remove(name string) error
	// path is what to call a file in an error.
	path(name string) string
	close() error
}

// A file is one segment.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	// Sync returns when the contents survive a crash.
	Sync() error
	size() (int64, error)
}

// disk is a folder of the file system, held by a lock for as long as it is open.
type disk struct {
	dir  string
	lock *os.File
}

func openDisk(dir string) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	// flock goes with the process: a killed agent leaves nothing to clean up.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w: two agents cannot share a folder", dir, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return &disk{dir: dir, lock: lock}, nil
}

func (d *disk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *disk) list() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *disk) create(name string) (file, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := d.sync(); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return diskFile{f}, nil
}

// sync makes the names in the folder survive a crash.
func (d *disk) sync() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func (d *disk) open(name string) (file, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (d *disk) remove(name string) error { return os.Remove(d.path(name)) }
func (d *disk) close() error             { return d.lock.Close() }

type diskFile struct{ *os.File }

// Sync leaves out the time stamps, which nobody reads.
func (f diskFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (f diskFile) size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// memory is a folder that goes with the process.
type memory struct{ files map[string]*memoryFile }

func newMemory() *memory { return &memory{files: make(map[string]*memoryFile)} }

func (m *memory) path(name string) string { return "memory:" + name }
func (m *memory) close() error            { return nil }

func (m *memory) list() ([]string, error) {
	var names []string
	for name := range m.files {
		names = append(names, name)
	}
	return names, nil
}

func (m *memory) create(name string) (file, error) {
	f := new(memoryFile)
	m.files[name] = f
	return f, nil
}

func (m *memory) open(name string) (file, error) {
	f, ok := m.files[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return f, nil
}

func (m *memory) remove(name string) error {
	delete(m.files, name)
	return nil
}

type memoryFile struct{ data []byte }

func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt only ever writes at the end: a spool does nothing else.
func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	f.data = append(f.data[:off], p...)
	return len(p), nil
}

func (f *memoryFile) Truncate(size int64) error { f.data = f.data[:size]; return nil }
func (f *memoryFile) Sync() error               { return nil }
func (f *memoryFile) Close() error              { return nil }
func (f *memoryFile) size() (int64, error)      { return int64(len(f.data)), nil }
