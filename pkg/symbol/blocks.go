// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"io"
	"sync"
)

const (
	blockSize  = 4096
	blockCount = 16 // 64 KiB for each of maxOpen files
)

// A blocks reads a file by blocks and keeps some of them. Naming an address
// takes some ten small reads at places that lie close together for most
// addresses; a read from the page cache costs more than all else that is done for them.
type blocks struct {
	r io.ReaderAt

	mu    sync.Mutex
	clock uint64
	held  [blockCount]block
}

type block struct {
	at   int64 // of the first byte in the file
	used uint64
	data []byte // shorter than a block at the end of the file
}

// ReadAt fills b from off, like io.ReaderAt.
func (c *blocks) ReadAt(b []byte, off int64) (n int, err error) {
	if len(b) > blockSize || off < 0 {
		return c.r.ReadAt(b, off)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(b) {
		at := (off + int64(n)) &^ (blockSize - 1)
		data, err := c.block(at)
		if err != nil {
			return n, err
		}
		skip := off + int64(n) - at
		if skip >= int64(len(data)) {
			return n, io.EOF
		}
		n += copy(b[n:], data[skip:])
	}
	return n, nil
}

func (c *blocks) block(at int64) ([]byte, error) {
	c.clock++
	oldest := &c.held[0]
	for i := range c.held {
		h := &c.held[i]
		if h.used != 0 && h.at == at {
			h.used = c.clock
			return h.data, nil
		}
		if h.used < oldest.used {
			oldest = h
		}
	}
	if oldest.data == nil {
		oldest.data = make([]byte, blockSize)
	}
	oldest.used = 0 // not to be found if the read fails
	n, err := c.r.ReadAt(oldest.data[:blockSize], at)
	oldest.data = oldest.data[:n]
	if n == 0 && err != nil {
		return nil, err
	}
	oldest.at, oldest.used = at, c.clock
	return oldest.data, nil
}
