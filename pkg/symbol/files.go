// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	maxOpen  = 32               // files held open
	openIdle = 10 * time.Second // how long a file that nobody asks stays open
)

// A files holds the files open that names are being read from: a file held open
// keeps its disk space and its mount busy, so only for as long as it is asked.
// Its methods may be called from several goroutines, and block on files.
type files struct {
	host string // Roots.Files
	now  func() time.Time

	mu   sync.Mutex
	open map[fileID]*openFile
}

type openFile struct {
	*os.File
	blocks blocks
	used   time.Time
}

// object opens an object's file, as the process it is asked for maps it, or as
// the process that it was first seen in does.
func (f *files) object(o *object, from opener) (io.ReaderAt, error) {
	if r := f.get(o.id); r != nil {
		return r, nil
	}
	file, id, err := f.mapped(from)
	if (err != nil || id != o.id) && o.from != from {
		closeIf(file)
		file, id, err = f.mapped(o.from)
	}
	return f.checked(file, id, o.id, err)
}

func (f *files) mapped(from opener) (*os.File, fileID, error) {
	if from.dir == nil {
		return nil, fileID{}, errors.New("no process maps the file any more")
	}
	return openMapped(from.dir, &from.m, f.host)
}

// debug opens a file of debug symbols.
func (f *files) debug(d *debugFile, from opener) (io.ReaderAt, error) {
	if r := f.get(d.id); r != nil {
		return r, nil
	}
	file, id, err := d.place.open(from, f.host)
	return f.checked(file, id, d.id, err)
}

func (f *files) checked(file *os.File, id, want fileID, err error) (io.ReaderAt, error) {
	if err != nil {
		return nil, err
	}
	if id != want {
		file.Close()
		return nil, errReplaced
	}
	return f.hold(id, file), nil
}

func closeIf(f *os.File) {
	if f != nil {
		f.Close()
	}
}

func (f *files) get(id fileID) io.ReaderAt {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.open[id]; o != nil {
		o.used = f.now()
		return &o.blocks
	}
	return nil
}

// hold keeps a file open. A reader that is closed under its user fails; the
// address is then asked for again.
func (f *files) hold(id fileID, file *os.File) io.ReaderAt {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.open[id]; o != nil {
		file.Close()
		return &o.blocks
	}
	if len(f.open) >= maxOpen {
		var oldest fileID
		for id, o := range f.open {
			if oldest == (fileID{}) || o.used.Before(f.open[oldest].used) {
				oldest = id
			}
		}
		f.open[oldest].Close()
		delete(f.open, oldest)
	}
	o := &openFile{File: file, blocks: blocks{r: file}, used: f.now()}
	f.open[id] = o
	return &o.blocks
}

// closeIdle closes what was not asked since before.
func (f *files) closeIdle(before time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, o := range f.open {
		if o.used.Before(before) {
			o.Close()
			delete(f.open, id)
		}
	}
}

func (f *files) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}
