// SPDX-License-Identifier: Apache-2.0

package duckdb

import "slices"

// A stream is what sequences count in: one boot of one node.
type stream struct{ node, boot string }

// held knows which batches a partition has. Agents number without gaps, so the
// ranges of a stream are few.
type held map[stream][]span

// A span is a range of sequences, both ends included.
type span struct{ first, last uint64 }

// has reports whether a batch is held.
func (h held) has(s stream, sequence uint64) bool {
	_, found := slices.BinarySearchFunc(h[s], sequence, compareSpan)
	return found
}

func compareSpan(s span, sequence uint64) int {
	switch {
	case s.last < sequence:
		return -1
	case s.first > sequence:
		return 1
	}
	return 0
}

// add notes a batch, joining the ranges that it closes the gap between.
func (h held) add(s stream, sequence uint64) {
	spans := h[s]
	i, found := slices.BinarySearchFunc(spans, sequence, compareSpan)
	if found {
		return
	}
	left := i > 0 && spans[i-1].last+1 == sequence
	right := i < len(spans) && sequence+1 == spans[i].first
	switch {
	case left && right:
		spans[i-1].last = spans[i].last
		spans = slices.Delete(spans, i, i+1)
	case left:
		spans[i-1].last = sequence
	case right:
		spans[i].first = sequence
	default:
		spans = slices.Insert(spans, i, span{sequence, sequence})
	}
	h[s] = spans
}

// highest is the greatest sequence held of a stream, 0 for none.
func (h held) highest(s stream) uint64 {
	spans := h[s]
	if len(spans) == 0 {
		return 0
	}
	return spans[len(spans)-1].last
}
