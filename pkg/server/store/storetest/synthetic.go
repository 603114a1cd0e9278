// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// The shape of a synthetic node-hour: that of one busy service, on the harsh side.
const (
	SyntheticWindow  = 10 * time.Second
	syntheticSamples = 3600 // firings in a window
	syntheticStacks  = 10_000
	syntheticNames   = 4000
	syntheticDepth   = 30
	syntheticThreads = 37
	syntheticPeriod  = 52_631_578 // nanoseconds: 19 Hz
)

// Synthetic makes node-hours of profiles for benchmarks: the same ones for the same
// seed. All its nodes run the same program, so they share stacks.
type Synthetic struct {
	stacks   []profile.Stack
	subjects []*profile.Subject
	random   *rand.Rand
	zipf     *rand.Zipf
}

// NewSynthetic makes the program that the nodes run.
func NewSynthetic(seed uint64) *Synthetic {
	random := rand.New(rand.NewPCG(seed, 0))
	s := &Synthetic{random: random, zipf: rand.NewZipf(random, 1.2, 40, syntheticStacks-1)}
	mapping := &profile.Mapping{Path: "/opt/service/bin/service", BuildID: "5f1c8e9b00d3a4c7"}
	locations := make([]*profile.Location, syntheticNames)
	for i := range locations {
		locations[i] = &profile.Location{Mapping: mapping, Offset: uint64(i) * 64, Lines: []profile.Line{
			{Function: fmt.Sprintf("service::layer%d::Handler::step_%d(Context&)", i%50, i), File: fmt.Sprintf("src/layer%d/handler.cc", i%50), Number: i % 900},
		}}
	}
	// Stacks are paths down a tree: most share their outer frames.
	for range syntheticStacks {
		depth := 5 + random.IntN(syntheticDepth)
		stack := make(profile.Stack, depth)
		at := 0
		for i := depth - 1; i >= 0; i-- {
			stack[i] = profile.Frame{Location: locations[at]}
			at = (at*3 + 1 + random.IntN(3)) % syntheticNames
		}
		s.stacks = append(s.stacks, stack)
	}
	for i := range syntheticThreads {
		s.subjects = append(s.subjects, &profile.Subject{PID: 1000 + i, Comm: "service", Workload: "service", Namespace: "prod"})
	}
	return s
}

// Batch makes one window of a node.
func (s *Synthetic) Batch(node string, sequence uint64, start time.Time) store.Batch {
	b := store.Batch{Node: node, BootID: "synthetic", Sequence: sequence, AgentVersion: "synthetic"}
	b.Start, b.End, b.PeriodNS = start, start.Add(SyntheticWindow), syntheticPeriod
	seen := make(map[uint64]int)
	for range syntheticSamples {
		n := s.zipf.Uint64()
		i, ok := seen[n]
		if !ok {
			i = len(b.Records)
			seen[n] = i
			b.Records = append(b.Records, profile.Record{Subject: s.subjects[n%syntheticThreads], Stack: s.stacks[n]})
		}
		b.Records[i].Values[profile.CPU] += syntheticPeriod
	}
	b.Losses = []profile.Loss{{Place: "ring", Count: uint64(s.random.IntN(3))}}
	b.Readings = []profile.Reading{{Time: start, Metric: "host_load1", Value: s.random.Float64()}}
	return b
}
