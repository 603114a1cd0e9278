// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"hash/maphash"
	"slices"

	"diagon.dev/diagon/pkg/profile"
)

// An interner hands out one pointer for equal values, so that stacks can be
// compared by pointer, within and across processes. What was not used for long is
// forgotten; its pointers stay valid, and an equal value then has a second one.
type interner struct {
	seed      maphash.Seed
	mappings  *cache[mappingKey, *profile.Mapping]
	locations *cache[locationKey, *profile.Location]
}

// mappingKey tells files apart: by content where there is a build-id, else by
// file. The path belongs to it: a build-id is the word of whoever made the file,
// and must not give its path to the files of others.
type mappingKey struct {
	path, buildID string
	file          fileID // zero when buildID is set, and for what is no file
}

type locationKey struct {
	realm   profile.Realm
	mapping *profile.Mapping
	offset  uint64
	lines   uint64 // hash
}

func newInterner(locations int) *interner {
	return &interner{
		seed:      maphash.MakeSeed(),
		mappings:  newCache[mappingKey, *profile.Mapping](max(locations/4, 64)),
		locations: newCache[locationKey, *profile.Location](locations),
	}
}

func (in *interner) mapping(path, buildID string, file fileID) *profile.Mapping {
	if buildID != "" {
		file = fileID{}
	}
	k := mappingKey{path, buildID, file}
	if m, ok := in.mappings.get(k); ok {
		return m
	}
	m := &profile.Mapping{Path: path, BuildID: buildID}
	in.mappings.put(k, m)
	return m
}

func (in *interner) location(l profile.Location) *profile.Location {
	k := locationKey{l.Realm, l.Mapping, l.Offset, in.hash(l.Lines)}
	if found, ok := in.locations.get(k); ok && slices.Equal(found.Lines, l.Lines) {
		return found
	}
	in.locations.put(k, &l)
	return &l
}

func (in *interner) hash(lines []profile.Line) uint64 {
	if len(lines) == 0 {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(in.seed)
	for _, l := range lines {
		maphash.WriteComparable(&h, l)
	}
	return h.Sum64()
}
