// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"os"
	"strings"

	"diagon.dev/diagon/pkg/procmaps"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/symbol/perfmap"
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

// offset names an offset into an object. final: asking again would bring nothing else.
func (v *visit) offset(o *object, from opener, at address) (l *profile.Location, reason string, final bool) {
	o.used = v.now
	off := at.lookup()
	k := place64{o.serial, off}
	if l, ok := v.s.places.get(k); ok {
		return l, o.why, true
	}
	unresolved := func(reason string) (*profile.Location, string, bool) {
		return v.s.in.location(profile.Location{Realm: profile.RealmUser, Mapping: o.mapping, Offset: off}), reason, false
	}
	if l := v.s.remembered(o, off); l != nil && at.pc%trampolineAlign != 0 {
		v.s.places.put(k, l)
		return l, "", true
	}
	if o.pending.pending() {
		return unresolved(unnamedSlow)
	}
	a, ok := v.ask(o, from, at)
	switch {
	case !ok:
		return unresolved(unnamedSlow)
	case a.ok:
		l = v.s.in.location(profile.Location{Realm: profile.RealmUser, Mapping: o.mapping, Offset: a.start, Lines: a.lines})
		if a.table != 0 {
			v.s.spans.put(place64{a.table, uint64(a.nearest)}, span{a.span, l})
		}
	case a.err != nil && !errors.Is(a.err, os.ErrClosed):
		return unresolved(unnamedFile)
	case a.err != nil:
		return unresolved(unnamedSlow)
	default:
		l, _, _ = unresolved("")
	}
	v.s.places.put(k, l)
	return l, o.why, true
}

// remembered is the location of an offset in a function that was named before, or nil.
// It reads nothing.
func (s *Symbolizer) remembered(o *object, off uint64) *profile.Location {
	if o.golang != nil || len(o.tables) == 0 {
		return nil
	}
	vaddr, ok := o.elf.VAddr(off)
	if !ok {
		return nil
	}
	t := &o.tables[0]
	sp, ok := s.spans.get(place64{t.serial, uint64(t.Nearest(vaddr))})
	if !ok || vaddr < sp.Low || vaddr >= sp.High {
		return nil
	}
	return sp.location
}

// An answer is what a lookup brought.
type answer struct {
	found
	ok  bool
	err error
}

// ask looks an offset up, here when it is sure to come back. done is false when it
// did not, in time.
func (v *visit) ask(o *object, from opener, at address) (a answer, done bool) {
	if o.ready(v.s.files) {
		a.found, a.ok, a.err = o.name(v.s.files, from, at)
		return a, true
	}
	later := &answer{}
	t, done := v.run(func() { later.found, later.ok, later.err = o.name(v.s.files, from, at) })
	if !done {
		o.pending = t
		return answer{}, false
	}
	return *later, true
}

// trampolineAlign is what the functions that signal handlers return to are aligned to.
const trampolineAlign = 16

// name names an offset, or finds that it is what a signal handler returns to:
// the only place where a return address is a function's first byte. The functions
// in question are aligned, so few addresses are looked up twice.
func (o *object) name(files *files, from opener, at address) (found, bool, error) {
	if !at.exact && at.pc%trampolineAlign == 0 {
		if f, ok, err := o.lookup(files, from, at.pc); err == nil && ok && f.start == at.pc && isTrampoline(f.lines[0].Function) {
			return f, ok, nil
		}
	}
	return o.lookup(files, from, at.lookup())
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

// known names a frame that came with its place in a file, because its process
// is in no /proc that is seen here. The file may be known from another process.
func (v *visit) known(l *profile.Location, exact bool) (*profile.Location, string) {
	if l.Mapping == nil || l.Mapping.BuildID == "" {
		return l, unnamedUnknown
	}
	o := v.s.registry.find(l.Mapping.BuildID)
	if o == nil || o.serial == 0 {
		return l, unnamedUnknown
	}
	named, reason, _ := v.offset(o, o.from, address{l.Offset, exact})
	if !named.Named() {
		return l, reason
	}
	return named, ""
}

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
