// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strings"

	"diagon.dev/diagon/pkg/procmaps"
	"diagon.dev/diagon/pkg/profile"
)

// inProcess names an address of a process.
func (v *visit) inProcess(p *process, at address) (*profile.Location, string) {
	pc := at.lookup()
	if l, ok := v.s.places.get(place64{p.serial, pc}); ok {
		return l, ""
	}
	if p.jit != nil {
		if l, ok := v.s.places.get(place64{p.jit.serial, pc}); ok {
			return l, ""
		}
	}
	m := p.table.Find(pc)
	if m == nil && p.mayReread(v.now) {
		m = v.reread(p, pc)
	}
	switch {
	case m == nil:
		return v.bare(at), unnamedUnmapped
	case isVDSO(m, v.s.vdso):
		return v.inObject(p, v.s.vdso, opener{}, at, m)
	case m.IsFile():
		return v.inFile(p, m, at)
	}
	return v.generated(p, at, v.s.in.mapping(region(m.Path), "", fileID{}), pc)
}

// region is the name of memory that is no file's.
func region(path string) string {
	switch {
	case path == "":
		return "[anon]"
	case strings.HasPrefix(path, "["):
		return path
	}
	return "[anon]"
}

// reread reads the maps of a process in which an address was not found.
func (v *visit) reread(p *process, pc uint64) *procmaps.Mapping {
	err := v.s.readImage(p, v.now, v.deadline)
	m := p.table.Find(pc)
	p.readAgain(v.now, err == nil && m != nil)
	return m
}

// inFile names an address in a mapping of a file.
func (v *visit) inFile(p *process, m *procmaps.Mapping, at address) (*profile.Location, string) {
	i := index(&p.table, m)
	o, reason := v.object(p, i)
	if o == nil {
		sl := &p.slots[i]
		file := fileID{dev: uint64(m.Major)<<32 | uint64(m.Minor), inode: m.Inode}
		mapping := v.s.in.mapping(m.Path, "", file)
		l := v.s.in.location(profile.Location{Realm: profile.RealmUser, Mapping: mapping, Offset: m.FileOffset(at.lookup())})
		if sl.failed {
			v.s.places.put(place64{p.serial, at.lookup()}, l)
		}
		return l, reason
	}
	if o.elf == nil { // code made at run time may lie in a file in memory
		return v.generated(p, at, o.mapping, m.FileOffset(at.lookup()))
	}
	return v.inObject(p, o, opener{p.dir, *m}, at, m)
}

func index(t *procmaps.Table, m *procmaps.Mapping) int {
	for lo, hi := 0, len(t.Mappings); lo < hi; {
		mid := (lo + hi) / 2
		switch {
		case t.Mappings[mid].Start == m.Start:
			return mid
		case t.Mappings[mid].Start < m.Start:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0
}

// inObject names an address in a file whose tables are known.
func (v *visit) inObject(p *process, o *object, from opener, at address, m *procmaps.Mapping) (*profile.Location, string) {
	l, reason, final := v.offset(o, from, address{m.FileOffset(at.pc), at.exact})
	if final {
		v.s.places.put(place64{p.serial, at.lookup()}, l)
	}
	return l, reason
}

// object returns what lies behind a mapping, if it is there.
func (v *visit) object(p *process, i int) (*object, string) {
	sl := &p.slots[i]
	switch {
	case sl.object != nil:
		return sl.object, ""
	case sl.failed:
		return nil, unnamedFile
	case sl.pending.pending():
		return nil, unnamedSlow
	}
	if sl.result == nil {
		result, m, dir, s := &loaded{}, p.table.Mappings[i], p.dir, v.s
		t, done := v.run(func() { *result = s.load(opener{dir, m}) })
		if t == nil {
			return nil, unnamedSlow
		}
		sl.pending, sl.result = t, result
		if !done {
			return nil, unnamedSlow
		}
	}
	result := sl.result
	sl.pending, sl.result = nil, nil
	if result.err != nil {
		v.s.log.Debug("a file's functions stay without names", "pid", p.pid, "path", p.table.Mappings[i].Path, "error", result.err)
		sl.failed = true
		return nil, unnamedFile
	}
	v.admit(result.object, p.table.Mappings[i].Path)
	p.slots[i].object = result.object
	return result.object, ""
}

// load opens the file behind a mapping, and reads its tables unless they are
// there already. It blocks on files.
func (s *Symbolizer) load(from opener) loaded {
	f, id, err := openMapped(from.dir, &from.m, s.roots.Files)
	if err != nil {
		return loaded{err: err}
	}
	if o := s.registry.get(id); o != nil {
		f.Close()
		return loaded{object: o}
	}
	o := &object{id: id, from: from}
	load(o, f, s.cfg, s.files)
	s.files.hold(id, f)
	return loaded{object: s.registry.add(o)}
}

// admit gives a new object its place, and makes room for it.
func (v *visit) admit(o *object, path string) {
	o.used = v.now
	if o.serial == 0 {
		v.s.admit(o, path)
	}
	dropped := v.s.registry.evict(v.s.cfg.CacheBytes-v.s.kernel.bytes()-v.s.jitBytes(), o)
	if len(dropped) == 0 {
		return
	}
	gone := make(map[*object]bool, len(dropped))
	for _, d := range dropped {
		gone[d] = true
	}
	for _, p := range v.s.processes {
		for i := range p.slots {
			if gone[p.slots[i].object] {
				p.slots[i].object = nil
			}
		}
	}
}

// admit gives a new object its serials and its mapping.
func (s *Symbolizer) admit(o *object, path string) {
	o.serial = s.serial()
	o.mapping = s.in.mapping(path, o.buildID, o.id)
	for i := range o.tables {
		o.tables[i].serial = s.serial()
	}
	if o.why != "" {
		s.log.Debug("not all of a file's functions have names", "path", path, "reason", o.why)
	}
}
