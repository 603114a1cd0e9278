// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// maxSeen bounds the order ids that are remembered: a server that delivers again
// does so within a capture's deadline, when far fewer orders can have come.
const maxSeen = 4096

// seen remembers the ids of orders that were handed over, one a line in a file, the
// newest last, so that no order is carried out twice.
type seen struct {
	path string // "" keeps them in memory

	mu    sync.Mutex
	file  *os.File
	order []string // oldest first
	known map[string]sighting
	lines int // in the file
}

// A sighting says when an order was handed over before.
type sighting uint8

const (
	never sighting = iota
	thisLife
	earlierLife // of the agent: what became of it then is not known
)

// openSeen reads the ids that an earlier life of the agent left at path.
func openSeen(path string) (*seen, error) {
	s := &seen{path: path, known: make(map[string]sighting)}
	if path == "" {
		return s, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("orders seen: %w", err)
	}
	defer f.Close()
	ids, err := readSeen(f)
	if err != nil {
		return nil, fmt.Errorf("orders seen: %s: %w", path, err)
	}
	for _, id := range ids {
		s.remember(id, earlierLife)
	}
	s.lines = 2 * maxSeen // whatever is there, the next add writes the file anew
	return s, nil
}

// readSeen answers the newest valid ids, oldest first. A last line without its end is
// what a crash left, and is no id.
func readSeen(r io.Reader) ([]string, error) {
	const maxFile = 4 * maxSeen * (maxOrderID + 1)
	raw, err := io.ReadAll(bufio.NewReader(io.LimitReader(r, maxFile)))
	if err != nil {
		return nil, err
	}
	raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
	var ids []string
	for line := range strings.Lines(string(raw)) {
		if id := strings.TrimSuffix(line, "\n"); validOrderID(id) {
			ids = append(ids, id)
		}
	}
	return ids[max(0, len(ids)-maxSeen):], nil
}

// add remembers id durably and answers when it was seen before. With an error it is
// remembered in memory all the same.
func (s *seen) add(id string) (sighting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.known[id]; before != never {
		return before, nil
	}
	s.remember(id, thisLife)
	if s.path == "" {
		return never, nil
	}
	if s.file == nil || s.lines >= 2*maxSeen {
		return never, s.rewrite()
	}
	if _, err := s.file.WriteString(id + "\n"); err != nil {
		return never, errors.Join(err, s.rewrite())
	}
	s.lines++
	return never, s.file.Sync()
}

func (s *seen) remember(id string, when sighting) {
	if s.known[id] != never {
		return
	}
	s.known[id] = when
	s.order = append(s.order, id)
	if len(s.order) > maxSeen {
		delete(s.known, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}

// rewrite puts a fresh file in place of the old one and keeps it open for appending.
func (s *seen) rewrite() error {
	f, err := os.OpenFile(s.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(s.order, "\n") + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return err
	}
	if s.file != nil {
		s.file.Close()
	}
	s.file, s.lines = f, len(s.order)
	return nil
}

func (s *seen) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

const maxOrderID = 128

// validOrderID keeps ids to what fits on a line and into a path.
func validOrderID(id string) bool {
	if id == "" || len(id) > maxOrderID {
		return false
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c >= 0x7f || c == '/' {
			return false
		}
	}
	return true
}
