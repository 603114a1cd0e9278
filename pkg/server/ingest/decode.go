// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/server/store"
)

// A refusal is a batch that will never be accepted.
type refusal struct {
	word string // for the counter
	err  error
}

func (r *refusal) Error() string { return r.word + ": " + r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(word, format string, args ...any) error {
	return &refusal{word: word, err: fmt.Errorf(format, args...)}
}

// Bounds of one batch, beyond those of its profile.
const (
	maxReadings = 100_000
	maxLabels   = 32
	maxLabel    = 1024 // bytes of a label's name or value, and of a metric's name
	maxLosses   = 256
	maxWindow   = time.Hour
	maxAhead    = 10 * time.Minute // that a node's clock may be ahead
)

// unpackedCost is what a byte of an unpacked profile takes once it is made of objects: a
// sample of 20 bytes has a record of 200, a location id of 2 a frame of 24.
const unpackedCost = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An unpacker undoes zstd, up to a limit that holds for the whole input and not for each frame.
type unpacker struct{ dec *zstd.Decoder }

func newUnpacker(limit int64) (*unpacker, error) {
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(maxDecoders),
		zstd.WithDecoderMaxMemory(uint64(limit)),
		zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &unpacker{dec}, nil
}

func (u *unpacker) unpack(packed []byte) ([]byte, error) { return u.dec.DecodeAll(packed, nil) }
func (u *unpacker) close()                               { u.dec.Close() }

// decode checks a batch and makes the store's words of it. It returns how many bytes of the
// inflight bound the batch holds, which the caller gives back once it is done with it. An
// error that is a refusal is the batch's fault; another is not.
func (s *Server) decode(ctx context.Context, b *diagonv1.Batch) (out store.Batch, held int64, err error) {
	if err := s.checkBatch(b); err != nil {
		return store.Batch{}, 0, err
	}
	// A place is kept while waiting for room. Whoever holds room needs no place, so the wait ends.
	select {
	case s.decoders <- struct{}{}:
		defer func() { <-s.decoders }()
	case <-ctx.Done():
		return store.Batch{}, 0, context.Cause(ctx)
	}
	raw, err := s.unpack.unpack(b.GetProfileZstd())
	if err != nil {
		return store.Batch{}, 0, refuse("zstd", "profile_zstd: %w", err)
	}
	held = min(int64(len(b.GetProfileZstd()))+unpackedCost*int64(len(raw)), s.cfg.Inflight)
	if err := s.inflight.Acquire(ctx, held); err != nil {
		return store.Batch{}, 0, err
	}
	out, err = s.assemble(b, raw)
	if err != nil {
		s.inflight.Release(held)
		return store.Batch{}, 0, err
	}
	return out, held, nil
}

// checkBatch looks at everything but the profile itself.
func (s *Server) checkBatch(b *diagonv1.Batch) error {
	if b.GetSequence() == 0 || b.GetSequence() > math.MaxInt64 {
		return refuse("sequence", "sequence: %d is not between 1 and %d", b.GetSequence(), int64(math.MaxInt64))
	}
	if got := crc32.Checksum(b.GetProfileZstd(), castagnoli); got != b.GetCrc32C() {
		return refuse("crc", "crc32c: %08x, and %08x was sent", got, b.GetCrc32C())
	}
	start, end, now := time.Unix(0, b.GetStartUnixNano()), time.Unix(0, b.GetEndUnixNano()), s.now()
	switch {
	case end.Before(start) || end.Sub(start) > maxWindow:
		return refuse("time", "window: from %v to %v is not between 0 and %v long", start.UTC(), end.UTC(), maxWindow)
	case end.Sub(now) > maxAhead:
		return refuse("time", "end: %v is in the future; is the node's clock right?", end.UTC())
	case now.Sub(start) > s.cfg.OldestBatch:
		return refuse("time", "start: %v is older than %v, and what is older is not kept", start.UTC(), s.cfg.OldestBatch)
	case len(b.GetReadings()) > maxReadings:
		return refuse("readings", "readings: %d, at most %d", len(b.GetReadings()), maxReadings)
	case len(b.GetLosses()) > maxLosses:
		return refuse("losses", "losses: %d, at most %d", len(b.GetLosses()), maxLosses)
	}
	return nil
}

// assemble puts the parts of a batch together.
func (s *Server) assemble(b *diagonv1.Batch, raw []byte) (store.Batch, error) {
	out := store.Batch{Node: b.GetNode(), BootID: b.GetBootId(), Sequence: b.GetSequence()}
	if len(raw) > 0 {
		meta, err := s.profile(&out, raw)
		if err != nil {
			return store.Batch{}, err
		}
		if meta.Node != "" && meta.Node != b.GetNode() {
			return store.Batch{}, refuse("node", "the profile is of node %q, the batch of %q", meta.Node, b.GetNode())
		}
		out.AgentVersion = meta.AgentVersion
		s.metrics.labelsIgnored.Add(float64(len(meta.Ignored)))
	}
	// The batch's own word counts: it is there without a profile too.
	out.Start, out.End = time.Unix(0, b.GetStartUnixNano()).UTC(), time.Unix(0, b.GetEndUnixNano()).UTC()
	out.Losses = nil
	for _, l := range b.GetLosses() {
		out.Losses = append(out.Losses, profile.Loss{Place: l.GetPlace(), Count: l.GetCount()})
	}
	for _, r := range b.GetReadings() {
		reading, err := readingOf(r)
		if err != nil {
			return store.Batch{}, refuse("readings", "reading %q: %w", r.GetMetric(), err)
		}
		if math.IsNaN(reading.Value) || math.IsInf(reading.Value, 0) {
			s.metrics.readingsDropped.Inc() // no number, so nothing that could be drawn or averaged
			continue
		}
		out.Readings = append(out.Readings, reading)
	}
	return out, nil
}

// profile reads the pprof part. A panic of the parser is the input's fault, and must not
// end the server.
func (s *Server) profile(out *store.Batch, raw []byte) (meta pprofio.Meta, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refuse("profile", "profile: the parser gave up: %v", p)
		}
	}()
	out.Batch, meta, err = pprofio.Decode(raw, s.cfg.Profile)
	if err != nil {
		return meta, refuse("profile", "profile: %w", err)
	}
	scrub(&out.Batch)
	return meta, nil
}

func readingOf(r *diagonv1.Reading) (profile.Reading, error) {
	if r.GetMetric() == "" || len(r.GetMetric()) > maxLabel {
		return profile.Reading{}, fmt.Errorf("a name of %d bytes, 1 to %d are right", len(r.GetMetric()), maxLabel)
	}
	if len(r.GetLabels()) > maxLabels {
		return profile.Reading{}, fmt.Errorf("%d labels, at most %d", len(r.GetLabels()), maxLabels)
	}
	labels := make(profile.Labels, 0, len(r.GetLabels()))
	for _, l := range r.GetLabels() {
		if l.GetName() == "" || len(l.GetName()) > maxLabel || len(l.GetValue()) > maxLabel {
			return profile.Reading{}, errors.New("a label's name is empty, or one of its texts too long")
		}
		labels = append(labels, profile.Label{Name: clean(l.GetName()), Value: clean(l.GetValue())})
	}
	slices.SortFunc(labels, func(a, b profile.Label) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(labels); i++ {
		if labels[i].Name == labels[i-1].Name {
			return profile.Reading{}, fmt.Errorf("label %q comes twice", labels[i].Name)
		}
	}
	return profile.Reading{
		Time: time.Unix(0, r.GetTimeUnixNano()).UTC(), Metric: clean(r.GetMetric()), Labels: labels, Value: r.GetValue(),
	}, nil
}
