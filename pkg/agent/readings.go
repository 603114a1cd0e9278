// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"sync"
	"time"

	"diagon.dev/diagon/pkg/profile"
)

// latest keeps the newest value of each reading for /metrics. A reading that is not
// renewed is forgotten, so that a device which has gone does not stand still there.
type latest struct {
	mu     sync.Mutex
	values map[string]profile.Reading
}

// staleAfter is several times the host collector's period.
const staleAfter = time.Minute

// maxLatest bounds the series on /metrics.
const maxLatest = 4096

func (l *latest) note(r profile.Reading) {
	key := seriesKey(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.values == nil {
		l.values = make(map[string]profile.Reading)
	}
	if _, known := l.values[key]; known || len(l.values) < maxLatest {
		l.values[key] = r
	}
}

func (l *latest) list(now time.Time) []profile.Reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]profile.Reading, 0, len(l.values))
	for key, r := range l.values {
		if now.Sub(r.Time) > staleAfter {
			delete(l.values, key)
			continue
		}
		list = append(list, r)
	}
	return list
}

func seriesKey(r profile.Reading) string {
	var b strings.Builder
	b.WriteString(r.Metric)
	for _, l := range r.Labels {
		b.WriteByte(0)
		b.WriteString(l.Name)
		b.WriteByte(0)
		b.WriteString(l.Value)
	}
	return b.String()
}
