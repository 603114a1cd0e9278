// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/symbol/elf"
)

// debugDir is where distributions keep debug files.
const debugDir = "/usr/lib/debug"

// maxChecked bounds the debug files that are read whole to compare a checksum, which
// is only needed where there is no build-id to compare.
const maxChecked = 256 << 20

// A place is a path in the root of the process that maps a file, or in the host's.
type place struct {
	path string
	host bool
}

func (p place) open(from opener, host string) (*os.File, fileID, error) {
	var fd int
	var err error
	switch {
	case p.host:
		fd, err = openBelow(host, p.path)
	case from.dir == nil:
		return nil, fileID{}, unix.ESRCH
	default:
		err = handle(from.dir, func(proc int) (err error) {
			fd, err = openIn(proc, p.path)
			return err
		})
	}
	if err != nil {
		return nil, fileID{}, err
	}
	return openRegular(fd)
}

// A debugFile holds the symbols of another file.
type debugFile struct {
	place place
	id    fileID
}

type openDebugFile struct {
	debugFile
	file *os.File
}

// findDebugFile looks for the file that holds o's symbols as GDB does: by
// build-id, then by the name in .gnu_debuglink; each in the root of the process
// and in the host's, where debug packages may be installed for containers that
// have none. A file is taken only when its build-id is the same, or without
// build-ids when the checksum agrees.
func findDebugFile(o *object, f *elf.File, r io.ReaderAt, host string) *openDebugFile {
	id := f.GNUBuildID(r, o.id.size)
	name, sum, linked := f.DebugLink(r, o.id.size)

	var places []place
	add := func(p string) { places = append(places, place{p, false}, place{p, true}) }
	if len(id) > 2 {
		add(path.Join(debugDir, ".build-id", id[:2], id[2:]+".debug"))
	}
	if linked {
		dir := path.Dir(o.from.m.Path)
		add(path.Join(dir, name))
		add(path.Join(dir, ".debug", name))
		add(path.Join(debugDir, dir, name))
	}
	for _, p := range places {
		file, fid, err := p.open(o.from, host)
		if err != nil {
			continue
		}
		err = matches(file, fid, id, sum, linked)
		if fid != o.id && err == nil {
			return &openDebugFile{debugFile{p, fid}, file}
		}
		file.Close()
	}
	return nil
}

var errOtherFile = errors.New("debug file of another file")

func matches(file *os.File, id fileID, buildID string, sum uint32, linked bool) error {
	f, err := elf.Read(file, id.size)
	if err != nil {
		return err
	}
	if buildID != "" {
		if f.GNUBuildID(file, id.size) == buildID {
			return nil
		}
		return errOtherFile
	}
	if !linked || id.size > maxChecked {
		return errOtherFile
	}
	has, err := elf.Checksum(file, id.size)
	if err != nil {
		return err
	}
	if has != sum {
		return errOtherFile
	}
	return nil
}
