// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

func TestBlocksReadAsTheFileDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 40*blockSize+77)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	plain, c := bytes.NewReader(data), &blocks{r: bytes.NewReader(data)}
	for range 20_000 {
		off, n := random.Int64N(int64(len(data))+10), random.IntN(2*blockSize)
		want, got := make([]byte, n), make([]byte, n)
		wn, werr := plain.ReadAt(want, off)
		gn, gerr := c.ReadAt(got, off)
		if wn != gn || !bytes.Equal(want, got) || n > 0 && (werr == io.EOF) != (gerr == io.EOF) {
			t.Fatalf("%d bytes at %d: got %d, %v, want %d, %v", n, off, gn, gerr, wn, werr)
		}
	}
	for i := range c.held {
		if cap(c.held[i].data) > blockSize {
			t.Errorf("a block of %d bytes", cap(c.held[i].data))
		}
	}
}
