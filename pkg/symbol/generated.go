// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/symbol/perfmap"
)

// generated names an address in code that a process made at run time.
func (v *visit) generated(p *process, at address, mapping *profile.Mapping, offset uint64) (*profile.Location, string) {
	unresolved := v.s.in.location(profile.Location{Realm: profile.RealmUser, Mapping: mapping, Offset: offset})
	if p.jit == nil {
		p.jit = &jit{serial: v.s.serial()}
	}
	j := p.jit
	if j.pending.pending() {
		return unresolved, unnamedSlow
	}
	var symbol perfmap.Symbol
	var ok bool
	var err error
	limit, dir, now, pc := v.s.cfg.functions()/4, p.dir, v.now, at.lookup()
	result := func() {
		_ = j.refresh(dir, now, limit) // no map is the ordinary case; it is looked for again
		symbol, ok, err = j.lookup(dir, pc)
	}
	t, done := v.run(result)
	if !done {
		if t != nil {
			j.pending = t
		}
		return unresolved, unnamedSlow
	}
	v.grown(j)
	l := unresolved
	if ok {
		// The start as this process has it: where the code lies says nothing to others.
		l = v.s.in.location(profile.Location{
			Realm: profile.RealmUser, Mapping: mapping, Offset: offset - (pc - symbol.Start),
			Lines: []profile.Line{{Function: pretty(symbol.Name)}},
		})
	}
	if err == nil {
		v.s.places.put(place64{j.serial, pc}, l)
	}
	return l, unnamedNoFile
}

// refreshJIT looks whether a perf map has grown: code moves, and what was at an
// address may have been replaced.
func (v *visit) refreshJIT(p *process) {
	j := p.jit
	if j == nil || j.pending.pending() || v.now.Before(j.next) {
		return
	}
	limit, dir, now := v.s.cfg.functions()/4, p.dir, v.now
	t, done := v.run(func() { _ = j.refresh(dir, now, limit) })
	if !done {
		j.pending = t
		return
	}
	v.grown(j)
}

// grown forgets the addresses of a map that has grown.
func (v *visit) grown(j *jit) {
	if j.grown {
		j.grown, j.serial = false, v.s.serial()
	}
}

// jitBytes is the memory that perf maps hold.
func (s *Symbolizer) jitBytes() int64 {
	var n int64
	for _, p := range s.processes {
		if p.jit != nil && !p.jit.pending.pending() {
			n += p.jit.entries.Bytes()
		}
	}
	return n
}
