// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
)

// DebugLink returns the name and CRC-32 (IEEE) of the file that holds this
// one's symbols, from .gnu_debuglink. The name is one path element, never a path.
func (f *File) DebugLink(r io.ReaderAt, size int64) (name string, sum uint32, ok bool) {
	s := f.Section(".gnu_debuglink")
	if s == nil {
		return "", 0, false
	}
	raw, err := s.read(r, size, 4096)
	if err != nil {
		return "", 0, false
	}
	return parseDebugLink(raw)
}

func parseDebugLink(raw []byte) (name string, sum uint32, ok bool) {
	end := bytes.IndexByte(raw, 0)
	if end <= 0 {
		return "", 0, false
	}
	at := align4(uint64(end) + 1)
	if at+4 > uint64(len(raw)) {
		return "", 0, false
	}
	name = string(raw[:end])
	if name == "." || name == ".." || strings.Contains(name, "/") {
		return "", 0, false
	}
	return name, binary.LittleEndian.Uint32(raw[at:]), true
}

// Checksum is the CRC-32 that DebugLink speaks of, over a whole file.
func Checksum(r io.ReaderAt, size int64) (uint32, error) {
	sum := crc32.NewIEEE()
	_, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(r, 0, size), make([]byte, 64<<10))
	return sum.Sum32(), err
}
