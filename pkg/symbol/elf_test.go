// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"diagon.dev/diagon/pkg/profile"
)

func TestFunctionsOfCPrograms(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
		// treat does to the program at path what a distribution does.
		treat    func(t *testing.T, path, host string, is told)
		hiddenIs string // the name of the static function; "" when it must have none
	}{
		{name: "position-independent", flags: []string{"-fPIE", "-pie"}, hiddenIs: "hidden"},
		{name: "at a fixed address", flags: []string{"-no-pie"}, hiddenIs: "hidden"},
		{name: "static", flags: []string{"-static"}, hiddenIs: "hidden"},
		{name: "static and position-independent", flags: []string{"-static-pie"}, hiddenIs: "hidden"},
		{name: "with debug information", flags: []string{"-g"}, hiddenIs: "hidden"},
		{name: "linked by lld's layout of many segments", flags: []string{"-Wl,-z,separate-code"}, hiddenIs: "hidden"},
		{
			name: "stripped, with the debug file of its build-id on the host", flags: []string{"-rdynamic"}, hiddenIs: "hidden",
			treat: func(t *testing.T, path, host string, is told) {
				strip(t, path, filepath.Join(host, debugDir, ".build-id", is.buildID[:2], is.buildID[2:]+".debug"))
			},
		},
		{
			name: "stripped, with a debug link to a file beside it", flags: []string{"-rdynamic"}, hiddenIs: "hidden",
			treat: func(t *testing.T, path, host string, is told) {
				strip(t, path, path+".dbg")
				sh(t, "objcopy", "--add-gnu-debuglink="+path+".dbg", path)
			},
		},
		{
			name: "stripped, without build-id, with a debug link into .debug", flags: []string{"-rdynamic"}, hiddenIs: "hidden",
			treat: func(t *testing.T, path, host string, is told) {
				sh(t, "objcopy", "--remove-section=.note.gnu.build-id", path)
				debug := filepath.Join(filepath.Dir(path), ".debug", "work.dbg")
				strip(t, path, debug)
				sh(t, "objcopy", "--add-gnu-debuglink="+debug, path)
			},
		},
		{
			name: "stripped, with a debug link to a file that was made from another program", flags: []string{"-rdynamic"}, hiddenIs: "",
			treat: func(t *testing.T, path, host string, is told) {
				other := path + ".other"
				compile(t, other, "another", "-rdynamic")
				strip(t, other, path+".dbg")
				sh(t, "strip", path)
				sh(t, "objcopy", "--add-gnu-debuglink="+path+".dbg", path)
			},
		},
		{
			name: "stripped, with mini debug information", flags: []string{"-rdynamic"}, hiddenIs: "hidden",
			treat: func(t *testing.T, path, host string, is told) {
				mini := path + ".mini"
				sh(t, "objcopy", "--only-keep-debug", path, mini)
				sh(t, "strip", "--strip-debug", mini)
				sh(t, "xz", "-k", mini)
				sh(t, "strip", path)
				sh(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", path)
			},
		},
		{
			name: "stripped of all but what it exports", flags: []string{"-rdynamic"}, hiddenIs: "",
			treat: func(t *testing.T, path, host string, is told) { sh(t, "strip", path) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, host := t.TempDir(), t.TempDir()
			path := filepath.Join(dir, "work")
			compile(t, path, "shown", tt.flags...)
			is := tell(t, path)
			if tt.treat != nil {
				tt.treat(t, path, host, is)
			}
			s, _ := start(t, func(c *Config, r *Roots) { r.Files = host })
			p := run(t, exec.CommandContext(t.Context(), path))
			at := p.addresses(t)

			// A leaf inside hidden, called by shown, called by main.
			stack := resolve(t, s, p.Process.Pid, user(at.hidden+5, at.shown+9, at.main+9)...)
			got := stack[0].Location
			switch {
			case tt.hiddenIs == "" && got.Named():
				t.Errorf("hidden is called %s, want no name", got.Lines[0].Function)
			case tt.hiddenIs == "" && got.Offset != is.offsets["hidden"]+5:
				t.Errorf("offset %#x, want that of the instruction, %#x", got.Offset, is.offsets["hidden"]+5)
			case tt.hiddenIs != "":
				wantFunction(t, got, tt.hiddenIs, is)
			}
			wantFunction(t, stack[1].Location, "shown", is)
			wantFunction(t, stack[2].Location, "main", is)
			for _, f := range stack {
				if m := f.Location.Mapping; m.Path != path || m.BuildID != is.buildID && m.BuildID != "" {
					t.Errorf("mapping %+v, want %s of build-id %s", m, path, is.buildID)
				}
			}
		})
	}
}

// wantFunction wants a location to be a function's, as Go's own reader found it.
func wantFunction(t *testing.T, l *profile.Location, name string, is told) {
	t.Helper()
	if !l.Named() {
		t.Errorf("%s has no name: %+v", name, l)
		return
	}
	if l.Lines[0].Function != name || l.Offset != is.offsets[name] {
		t.Errorf("%s at %#x, want %s at %#x", l.Lines[0].Function, l.Offset, name, is.offsets[name])
	}
}

func TestEqualPlacesAreOnePointer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work")
	compile(t, path, "shown")
	s, _ := start(t)
	var first profile.Stack
	for range 2 {
		p := run(t, exec.CommandContext(t.Context(), path))
		at := p.addresses(t)
		stack := resolve(t, s, p.Process.Pid, user(at.shown+1, at.shown+9, at.malloc+4)...)
		if stack[0].Location != stack[1].Location {
			t.Error("two addresses of a function without lines are two places")
		}
		if name := stack[2].Location.Lines[0].Function; name != "malloc" {
			t.Errorf("libc's malloc is called %q", name)
		}
		for i := range first {
			if stack[i].Location != first[i].Location {
				t.Errorf("frame %d is another place in a second process", i)
			}
		}
		first = stack
	}
}

func TestCppNamesAreDemangled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work")
	sh(t, "g++", "-O1", "-o", path, "testdata/work.cc")
	s, _ := start(t)
	p := run(t, exec.CommandContext(t.Context(), path))
	var at uint64
	if _, err := scanAddress(p.line(t), &at); err != nil {
		t.Fatal(err)
	}
	if got := resolve(t, s, p.Process.Pid, user(at+1)...).String(); got != "fleet::Ring<float>::push" {
		t.Errorf("got %s", got)
	}
}

func TestADebugFileInsideTheProcessRoot(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "app"), 0o755); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(root, "app", "work")
	compile(t, inside, "shown", "-static")
	is := tell(t, inside)
	strip(t, inside, filepath.Join(root, debugDir, ".build-id", is.buildID[:2], is.buildID[2:]+".debug"))

	s, _ := start(t, func(c *Config, r *Roots) { r.Files = t.TempDir() })
	p := run(t, inRoot(exec.CommandContext(t.Context(), "/app/work"), root))
	at := p.addresses(t)
	stack := resolve(t, s, p.Process.Pid, user(at.hidden+5)...)
	wantFunction(t, stack[0].Location, "hidden", is)
	if m := stack[0].Location.Mapping; m.BuildID != is.buildID {
		t.Errorf("mapping %+v", m)
	}
}
