// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"path"
	"strings"
)

// A Realm says which world an address belongs to.
type Realm uint8

const (
	RealmUser      Realm = iota // an address in a process
	RealmKernel                 // an address in the kernel
	RealmSynthetic              // no address: a frame made to group or annotate, such as "[accelerators]"
)

// String returns "user", "kernel" or "synthetic".
func (r Realm) String() string {
	switch r {
	case RealmUser:
		return "user"
	case RealmKernel:
		return "kernel"
	case RealmSynthetic:
		return "synthetic"
	}
	return fmt.Sprintf("realm(%d)", uint8(r))
}

// ParseRealm is the inverse of Realm.String.
func ParseRealm(s string) (Realm, error) {
	for _, r := range []Realm{RealmUser, RealmKernel, RealmSynthetic} {
		if r.String() == s {
			return r, nil
		}
	}
	return 0, fmt.Errorf("unknown realm %q", s)
}

// A Mapping is a file, or a region with a name, that code was mapped from.
// It is immutable and shared by pointer: one per file content, not per process,
// so that equal code in two processes is one thing.
type Mapping struct {
	Path    string // as in /proc/PID/maps: an absolute path, "[vdso]", "[kernel]", "[anon]", or a module's name such as "nf_tables"
	BuildID string // lower-case hex of the GNU build-id, or of Go's when it has no other; "" when there is none
}

// shownBuildID is how many digits of a build-id tell files apart for a person.
const shownBuildID = 12

// Name is the last element of Path: what a person calls the file. A file that is known by
// its build-id only is called by the first digits of that.
func (m *Mapping) Name() string {
	switch {
	case m == nil || m.Path == "" && m.BuildID == "":
		return "[unknown]"
	case m.Path == "":
		return "[build-id:" + m.BuildID[:min(len(m.BuildID), shownBuildID)] + "]"
	}
	return path.Base(m.Path)
}

// A Line is one function at one place in its source.
type Line struct {
	Function string // demangled, as a person writes it
	File     string // "" when not known
	Number   int    // 1-based; 0 when not known
}

// A Location is what is known about one address. It is immutable and shared by
// pointer, so two frames at the same place hold the same *Location and a
// stack can be compared and hashed by its pointers.
type Location struct {
	Realm   Realm
	Mapping *Mapping // nil when the address lay in no mapping that could be read
	Offset  uint64   // the address as an offset into Mapping's file; the address itself when Mapping is nil
	Lines   []Line   // innermost first: more than one when functions were inlined; empty when unresolved
}

// Named reports whether the location has a function name.
func (l *Location) Named() bool { return l != nil && len(l.Lines) > 0 && l.Lines[0].Function != "" }

// unresolved is how a place without a name is written: module+0xOFFSET.
func (l *Location) unresolved() string { return fmt.Sprintf("%s+0x%x", l.Mapping.Name(), l.Offset) }

// A Frame is one step of a stack: an address, and once resolved its Location.
type Frame struct {
	Realm    Realm
	Address  uint64    // virtual address as sampled: the program counter of the leaf, return addresses above it
	Location *Location // nil until pkg/symbol has seen the frame
}

// A Stack is a path of calls, leaf first.
type Stack []Frame

// String writes a stack leaf first, separated by spaces: names where there are
// some, addresses elsewhere, kernel frames marked by "[k]".
func (s Stack) String() string {
	var b strings.Builder
	for i, f := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case f.Location.Named():
			b.WriteString(f.Location.Lines[0].Function)
		case f.Location != nil:
			b.WriteString(f.Location.unresolved())
		default:
			fmt.Fprintf(&b, "0x%x", f.Address)
		}
		if f.Realm == RealmKernel {
			b.WriteString("[k]")
		}
	}
	return b.String()
}

// kernelSuffix ends the name of every kernel frame in folded text.
const kernelSuffix = "_[k]"

// Names lists the location's functions as folded text writes them, innermost
// first: by function name, unresolved as module+0xOFFSET, kernel names ending
// in "_[k]". There is always at least one.
func (l *Location) Names() []string {
	if !l.Named() {
		return []string{l.suffixed(l.unresolved())}
	}
	names := make([]string, len(l.Lines))
	for i, line := range l.Lines {
		names[i] = l.suffixed(line.Function)
	}
	return names
}

func (l *Location) suffixed(name string) string {
	if l.Realm == RealmKernel {
		return name + kernelSuffix
	}
	return name
}
