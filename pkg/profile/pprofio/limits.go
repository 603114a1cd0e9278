// SPDX-License-Identifier: Apache-2.0

package pprofio

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits bound what Decode accepts. A two-byte message in a profile becomes an
// object of a hundred bytes in memory, so counting bytes alone would not do.
type Limits struct {
	Bytes    int64 // of the profile, unpacked
	Messages int   // samples, mappings, locations, functions, strings, together
	Frames   int   // frames of all samples together
}

// DefaultLimits fit a minute of a node with 256 busy CPUs; a larger profile is not one of diagon's.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Messages: 2 << 20, Frames: 16 << 20}
}

// Field numbers of google/pprof's proto/profile.proto.
const (
	fieldSample         = 2 // Profile.sample
	fieldSampleLocation = 1 // Sample.location_id, packed
)

// check walks the outermost messages and counts, before anything is allocated.
func (lim Limits) check(raw []byte) error {
	if int64(len(raw)) > lim.Bytes {
		return fmt.Errorf("%w: %d bytes, at most %d are accepted", ErrTooLarge, len(raw), lim.Bytes)
	}
	messages, frames := 0, 0
	for rest := raw; len(rest) > 0; {
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return fmt.Errorf("byte %d: %w", len(raw)-len(rest), protowire.ParseError(n))
		}
		rest = rest[n:]
		n = protowire.ConsumeFieldValue(num, typ, rest)
		if n < 0 {
			return fmt.Errorf("byte %d: %w", len(raw)-len(rest), protowire.ParseError(n))
		}
		if typ == protowire.BytesType {
			messages++
		}
		if num == fieldSample && typ == protowire.BytesType {
			body, _ := protowire.ConsumeBytes(rest)
			frames += framesOf(body)
		}
		if messages > lim.Messages {
			return fmt.Errorf("%w: more than %d messages", ErrTooLarge, lim.Messages)
		}
		if frames > lim.Frames {
			return fmt.Errorf("%w: more than %d frames", ErrTooLarge, lim.Frames)
		}
		rest = rest[n:]
	}
	return nil
}

// framesOf counts a sample's locations: in a packed list each varint ends with a
// byte below 0x80. A body that cannot be walked is left to the parser to refuse.
func framesOf(body []byte) int {
	frames := 0
	for len(body) > 0 {
		num, typ, n := protowire.ConsumeTag(body)
		if n < 0 {
			return frames
		}
		body = body[n:]
		n = protowire.ConsumeFieldValue(num, typ, body)
		if n < 0 {
			return frames
		}
		switch {
		case typ == protowire.BytesType && num == fieldSampleLocation:
			packed, _ := protowire.ConsumeBytes(body)
			for _, c := range packed {
				if c < 0x80 {
					frames++
				}
			}
		case typ == protowire.VarintType, typ == protowire.BytesType:
			frames++ // a location by itself, a value, or a label: an object each
		}
		body = body[n:]
	}
	return frames
}
