// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"diagon.dev/diagon/pkg/profile"
)

// Identifiers are content hashes: XXH64 with seed 0 over the fields below, each
// string led by its length as 8 bytes, each number as 8 bytes, little endian.
// Files outlive releases, so what is hashed, and in which order, never changes
// (TestIdentifiersAreStable): a new field needs a new table, not a longer hash.
//
// Sixty-four bits make an accidental collision among ten million stacks a matter
// of one in 400,000. XXH64 does not withstand somebody who looks for collisions;
// agents are trusted to describe their own node.
type hasher struct {
	digest xxhash.Digest
	word   [8]byte
}

func (h *hasher) reset(kind byte) {
	h.digest.ResetWithSeed(0)
	h.number(uint64(kind))
}

func (h *hasher) number(n uint64) {
	binary.LittleEndian.PutUint64(h.word[:], n)
	_, _ = h.digest.Write(h.word[:]) // a Digest takes everything
}

func (h *hasher) text(s string) {
	h.number(uint64(len(s)))
	_, _ = h.digest.WriteString(s)
}

// What an identifier is of: the first number hashed.
const (
	kindFrame byte = iota + 1
	kindStack
	kindSubject
	kindSeries
)

// frame identifies a location by everything that is known about it.
func (h *hasher) frame(l *profile.Location) uint64 {
	h.reset(kindFrame)
	h.text(l.Realm.String())
	if l.Mapping == nil {
		h.number(0)
	} else {
		h.number(1)
		h.text(l.Mapping.Path)
		h.text(l.Mapping.BuildID)
	}
	h.number(l.Offset)
	h.number(uint64(len(l.Lines)))
	for _, line := range l.Lines {
		h.text(line.Function)
		h.text(line.File)
		h.number(uint64(line.Number))
	}
	return h.digest.Sum64()
}

// stack identifies a stack by its frames, leaf first.
func (h *hasher) stack(frames []uint64) uint64 {
	h.reset(kindStack)
	for _, id := range frames {
		h.number(id)
	}
	return h.digest.Sum64()
}

func (h *hasher) subject(s subject) uint64 {
	h.reset(kindSubject)
	h.number(uint64(s.PID))
	for _, text := range []string{s.Comm, s.Thread, s.ContainerID, s.Namespace, s.Pod, s.Container,
		s.Workload, s.WorkloadKind, s.Rank, s.Device, s.Ioctl} {
		h.text(text)
	}
	return h.digest.Sum64()
}

func (h *hasher) series(metric string, ls profile.Labels) uint64 {
	h.reset(kindSeries)
	h.text(metric)
	for _, l := range ls {
		h.text(l.Name)
		h.text(l.Value)
	}
	return h.digest.Sum64()
}
