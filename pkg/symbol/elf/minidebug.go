// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// MiniDebug unpacks .gnu_debugdata: an ELF file, compressed by xz, that holds
// the symbols which a distribution's strip took out of .symtab (Fedora, RHEL and their
// kin). It returns nil when there is none, and ErrTooLarge, before anything is
// unpacked, when it is more than limit bytes packed or unpacked.
func (f *File) MiniDebug(r io.ReaderAt, size int64, limit int) ([]byte, error) {
	s := f.Section(".gnu_debugdata")
	if s == nil {
		return nil, nil
	}
	packed, err := s.read(r, size, uint64(limit))
	if err != nil {
		return nil, err
	}
	b, err := unpackXZ(packed, limit)
	if err != nil {
		return nil, fmt.Errorf(".gnu_debugdata: %w", err)
	}
	return b, nil
}

var errXZ = errors.New("not an xz stream of LZMA2")

// unpackXZ reads the container of one xz stream (https://tukaani.org/xz/xz-file-format.txt)
// and leaves the unpacking of each block to the library.
//
// The container is not left to it because it allocates the dictionary that
// the block's header asks for, up to 4 GiB. LZMA2 says the unpacked size of each chunk in
// front of it, so the whole size is known first: it is checked against the
// limit, and no dictionary need be larger than it.
func unpackXZ(in []byte, limit int) ([]byte, error) {
	if len(in) < 12 || !bytes.HasPrefix(in, []byte("\xfd7zXZ\x00")) {
		return nil, errXZ
	}
	check := map[byte]int{0: 0, 1: 4, 4: 8, 10: 32}
	checkSize, ok := check[in[7]]
	if !ok {
		return nil, errXZ
	}
	var out []byte
	for rest := in[12:]; ; {
		if len(rest) == 0 {
			return nil, errXZ
		}
		if rest[0] == 0 { // the index follows the last block
			return out, nil
		}
		body, dictionary, err := blockHeader(rest)
		if err != nil {
			return nil, err
		}
		packed, unpacked, err := chunks(body, limit-len(out))
		if err != nil {
			return nil, err
		}
		if out, err = unpackBlock(out, body[:packed], unpacked, dictionary); err != nil {
			return nil, err
		}
		end := align4(uint64(packed)) + uint64(checkSize)
		if end > uint64(len(body)) {
			return nil, errXZ
		}
		rest = body[end:]
	}
}

// blockHeader returns what follows the header, and the size of the dictionary.
func blockHeader(b []byte) (body []byte, dictionary uint64, err error) {
	size := (int(b[0]) + 1) * 4
	if len(b) < size || size < 12 {
		return nil, 0, errXZ
	}
	flags, fields := b[1], b[2:size-4]
	if flags&0x3f != 0 { // one filter, and no bits of a later format
		return nil, 0, errXZ
	}
	for _, present := range []byte{0x40, 0x80} { // the packed and the unpacked size
		if flags&present == 0 {
			continue
		}
		_, n := binary.Uvarint(fields)
		if n <= 0 {
			return nil, 0, errXZ
		}
		fields = fields[n:]
	}
	const lzma2 = 0x21
	if len(fields) < 3 || fields[0] != lzma2 || fields[1] != 1 || fields[2] > 40 {
		return nil, 0, errXZ
	}
	bits := fields[2]
	return b[size:], (2 | uint64(bits)&1) << (bits/2 + 11), nil
}

// chunks walks the LZMA2 chunks at the start of b and returns their sizes.
func chunks(b []byte, limit int) (packed, unpacked int, err error) {
	for at := 0; ; {
		if at >= len(b) {
			return 0, 0, errXZ
		}
		control := b[at]
		header, plain, body := 3, 0, 0
		switch {
		case control == 0:
			return at + 1, unpacked, nil
		case control >= 0x80:
			header = 5
			if control >= 0xc0 {
				header = 6
			}
		case control > 2:
			return 0, 0, errXZ
		}
		if len(b)-at < header {
			return 0, 0, errXZ
		}
		plain = int(binary.BigEndian.Uint16(b[at+1:])) + 1
		body = plain
		if control >= 0x80 {
			plain += int(control&0x1f) << 16
			body = int(binary.BigEndian.Uint16(b[at+3:])) + 1
		}
		at, unpacked = at+header+body, unpacked+plain
		if unpacked > limit {
			return 0, 0, fmt.Errorf("more than %d bytes unpacked: %w", limit, ErrTooLarge)
		}
	}
}

func unpackBlock(out, packed []byte, unpacked int, dictionary uint64) ([]byte, error) {
	config := lzma.Reader2Config{DictCap: int(min(dictionary, max(uint64(unpacked), lzma.MinDictCap)))}
	r, err := config.NewReader2(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("xz: %w", err)
	}
	from := len(out)
	out = append(out, make([]byte, unpacked)...)
	if _, err := io.ReadFull(r, out[from:]); err != nil {
		return nil, fmt.Errorf("xz: %w", err)
	}
	return out, nil
}
