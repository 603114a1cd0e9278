// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"strings"
	"unicode/utf8"

	"diagon.dev/diagon/pkg/profile"
)

// scrub makes every text of b valid UTF-8 without NUL. Names come out of processes
// and symbol tables, where any byte may stand; databases and JSON take UTF-8 only. It
// writes into what Decode has just made and nobody else has seen.
func scrub(b *profile.Batch) {
	subjects := map[*profile.Subject]bool{}
	locations := map[*profile.Location]bool{}
	for i := range b.Records {
		r := &b.Records[i]
		r.Thread, r.Device, r.Request = clean(r.Thread), clean(r.Device), clean(r.Request)
		if r.Subject != nil && !subjects[r.Subject] {
			subjects[r.Subject] = true
			scrubSubject(r.Subject)
		}
		for _, f := range r.Stack {
			if f.Location != nil && !locations[f.Location] {
				locations[f.Location] = true
				scrubLocation(f.Location)
			}
		}
	}
}

func scrubSubject(s *profile.Subject) {
	for _, p := range []*string{&s.Comm, &s.ContainerID, &s.Namespace, &s.Pod, &s.Container, &s.Workload, &s.WorkloadKind, &s.Rank} {
		*p = clean(*p)
	}
}

func scrubLocation(l *profile.Location) {
	for i := range l.Lines {
		l.Lines[i].Function, l.Lines[i].File = clean(l.Lines[i].Function), clean(l.Lines[i].File)
	}
	if l.Mapping != nil {
		l.Mapping.Path, l.Mapping.BuildID = clean(l.Mapping.Path), clean(l.Mapping.BuildID)
	}
}

func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
