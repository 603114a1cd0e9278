// SPDX-License-Identifier: Apache-2.0

package query

import "golang.org/x/sync/semaphore"

// Answers are made in memory, so it is the large ones that must be few. A question takes
// as many of Config.MaxQueries as its answer may be large.
const (
	costSmall   = 1 // lists and timelines
	costProfile = 2 // a tree or table of about as many nodes as a page draws
	costLarge   = 6 // of more nodes, or of every stack: pprof, folded, speedscope
)

// admission lets questions in by what they may cost, without a queue: who asks again in a second
// holds nothing here meanwhile.
type admission struct {
	free  *semaphore.Weighted
	whole int64
}

func newAdmission(whole int) admission {
	return admission{free: semaphore.NewWeighted(int64(whole)), whole: int64(whole)}
}

// enter takes cost; leave gives it back. A cost above the whole takes the whole, so that every question can be answered.
func (a admission) enter(cost int64) (leave func(), ok bool) {
	cost = min(cost, a.whole)
	if !a.free.TryAcquire(cost) {
		return nil, false
	}
	return func() { a.free.Release(cost) }, true
}

// costOfProfile is for profiles, costOfDiff for two of them.
func costOfProfile(p params) int64 {
	switch p["format"] {
	case "pprof", "folded", "speedscope":
		return costLarge
	}
	// A number that is none is refused later, cheaply.
	if n, err := p.count("max_nodes", defaultNodes, 1<<30); err == nil && n > 2*defaultNodes {
		return costLarge
	}
	return costProfile
}

func costOfDiff(p params) int64 { return 2 * costOfProfile(p) }

func costOfList(params) int64 { return costSmall }
