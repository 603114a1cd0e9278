// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"sync"
	"time"
)

// A registry holds the objects whose tables are in memory.
type registry struct {
	mu        sync.Mutex
	byID      map[fileID]*object
	byBuildID map[string]*object
	bytes     int64
	evicted   uint64
}

func (g *registry) get(id fileID) *object {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byID[id]
}

func (g *registry) find(buildID string) *object {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byBuildID[buildID]
}

// add takes an object in, or returns the one that came first.
func (g *registry) add(o *object) *object {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first := g.byID[o.id]; first != nil {
		return first
	}
	g.byID[o.id] = o
	if o.buildID != "" {
		g.byBuildID[o.buildID] = o
	}
	g.bytes += o.bytes
	return o
}

// evict drops the objects used least recently until what is left fits, and
// returns them. keep stays.
func (g *registry) evict(fit int64, keep *object) []*object {
	g.mu.Lock()
	defer g.mu.Unlock()
	var dropped []*object
	for g.bytes > fit {
		var oldest *object
		var at time.Time
		for _, o := range g.byID {
			if o != keep && (oldest == nil || o.used.Before(at)) {
				oldest, at = o, o.used
			}
		}
		if oldest == nil {
			break
		}
		delete(g.byID, oldest.id)
		if g.byBuildID[oldest.buildID] == oldest {
			delete(g.byBuildID, oldest.buildID)
		}
		g.bytes -= oldest.bytes
		g.evicted++
		dropped = append(dropped, oldest)
	}
	return dropped
}

func (g *registry) held() (files int, bytes int64, evicted uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.byID), g.bytes, g.evicted
}
