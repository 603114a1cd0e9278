// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"os"

	"diagon.dev/diagon/pkg/profile"
)

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
