// SPDX-License-Identifier: Apache-2.0

// Package top answers: what is this host running right now? It adds windows of samples up
// into a table of functions and one of processes, and shows them on a terminal.
package top

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"diagon.dev/diagon/pkg/agent"
	"diagon.dev/diagon/pkg/profile"
)

// A Table is what was seen in one interval, the hottest first.
type Table struct {
	End       time.Time
	Length    time.Duration // of the interval
	Samples   uint64
	CPU       time.Duration // of the samples in the table, on all CPUs together, idle time apart
	Seen      time.Duration // the same of the samples that were taken: the table may lag while names are looked up
	Functions []Function
	Processes []Process
	Losses    []profile.Loss
}

// A Function is one line of the table of functions.
type Function struct {
	Name   string
	Module string
	Kernel bool
	Self   time.Duration // in the function itself
	Total  time.Duration // in it or in what it called; once a stack, however often it occurs there
}

// A Process is one line of the table of processes.
type Process struct {
	PID     int // 0: it is in no /proc that is to be seen here
	Comm    string
	CPU     time.Duration
	Hottest string // the function with the greatest Self
}

type functionKey struct {
	name, module string
	kernel       bool
}

type processKey struct {
	pid  int
	comm string
}

type processSum struct {
	cpu  time.Duration
	self map[functionKey]time.Duration
}

// NewTable adds up windows that follow one another.
func NewTable(windows ...agent.Window) Table {
	var t Table
	functions := make(map[functionKey]*Function)
	processes := make(map[processKey]*processSum)
	losses := make(map[string]uint64)
	for _, w := range windows {
		t.End = w.End
		t.Length += w.End.Sub(w.Start)
		t.Samples += w.Samples
		for _, l := range w.Losses {
			losses[l.Place] += l.Count
		}
		for i := range w.Records {
			t.add(&w.Records[i], functions, processes)
		}
	}
	t.Seen = t.CPU
	for _, f := range functions {
		t.Functions = append(t.Functions, *f)
	}
	slices.SortFunc(t.Functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
	for key, sum := range processes {
		t.Processes = append(t.Processes, Process{PID: key.pid, Comm: key.comm, CPU: sum.cpu, Hottest: sum.hottest()})
	}
	slices.SortFunc(t.Processes, func(a, b Process) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Comm, b.Comm))
	})
	for place, n := range losses {
		t.Losses = append(t.Losses, profile.Loss{Place: place, Count: n})
	}
	slices.SortFunc(t.Losses, func(a, b profile.Loss) int { return cmp.Compare(a.Place, b.Place) })
	return t
}

func (t *Table) add(r *profile.Record, functions map[functionKey]*Function, processes map[processKey]*processSum) {
	cpu := time.Duration(r.Values[profile.CPU])
	t.CPU += cpu

	path := functionsOf(r.Stack)
	for i, key := range path {
		f := functions[key]
		if f == nil {
			f = &Function{Name: key.name, Module: key.module, Kernel: key.kernel}
			functions[key] = f
		}
		if i == 0 {
			f.Self += cpu
		}
		if !slices.Contains(path[:i], key) {
			f.Total += cpu
		}
	}

	var who processKey
	if r.Subject != nil {
		who = processKey{r.Subject.PID, r.Subject.Comm}
	}
	p := processes[who]
	if p == nil {
		p = &processSum{self: make(map[functionKey]time.Duration)}
		processes[who] = p
	}
	p.cpu += cpu
	p.self[path[0]] += cpu
}

func (p *processSum) hottest() string {
	var best functionKey
	for key, self := range p.self {
		if b := p.self[best]; self > b || (self == b && key.name < best.name) {
			best = key
		}
	}
	return best.name
}

// functionsOf lists a stack's functions, leaf first, those inlined apart. There is always one.
func functionsOf(stack profile.Stack) []functionKey {
	var path []functionKey
	for _, f := range stack {
		kernel := f.Realm == profile.RealmKernel
		switch {
		case f.Location == nil:
			path = append(path, functionKey{fmt.Sprintf("0x%x", f.Address), "[unknown]", kernel})
		case !f.Location.Named():
			path = append(path, functionKey{f.Location.Names()[0], f.Location.Mapping.Name(), kernel})
		default:
			for _, line := range f.Location.Lines {
				path = append(path, functionKey{line.Function, f.Location.Mapping.Name(), kernel})
			}
		}
	}
	if len(path) == 0 {
		return []functionKey{{name: "[no stack]"}}
	}
	return path
}
