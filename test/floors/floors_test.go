// SPDX-License-Identifier: Apache-2.0

// Package floors keeps the shape of the tree: who may import whom. It has no code but this test.
package floors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "diagon.dev/diagon/"

// floors, downward only: a room imports rooms of lower floors and itself, and
// no neighbour. A room is a folder with all below it, unless a longer line
// takes that out; a * stands for each folder there, each a room of its own.
var floors = [][]string{
	0: {"pkg/profile"},
	1: {"pkg/collector", "pkg/profile/pprofio", "pkg/procmaps", "api", "ui"},
	2: {"pkg/collector/*", "pkg/gpu", "pkg/tpu", "pkg/torch", "pkg/unwind", "pkg/symbol", "pkg/subject"},
	3: {"pkg/uplink"},
	4: {"pkg/agent", "pkg/server", "pkg/kube"},
	5: {"cmd"},
	6: {"test", "bench"},
}

// rules are the walls that no floor explains. "!x" as a package is every
// package but x. They hold for direct imports; with "deps of" for all that is linked in.
var rules = []rule{
	{"pkg/profile", "!std", "the words rest on nothing"},
	{"!pkg/gpu/nvml", "C", "one package holds cgo, so that the rest links statically"},
	{"!pkg/subject/kube pkg/kube", "k8s.io/client-go", "the Kubernetes client weighs more than all the rest of the agent"},
	{"deps of cmd/diagon", "diagon.dev/diagon/pkg/server", "a privileged process carries no server"},
	{"deps of cmd/diagon", "github.com/duckdb", "a privileged process carries no database"},
	{"deps of cmd/diagon", "github.com/ClickHouse", "a privileged process carries no database"},
	{"deps of cmd/diagon", "github.com/nats-io", "a privileged process carries no message broker"},
	{"deps of cmd/diagon", "github.com/prometheus/prometheus", "a privileged process carries no query language"},
	{"deps of cmd/diagon", "diagon.dev/diagon/ui", "a privileged process serves no page"},
}

func TestFloors(t *testing.T) {
	for _, p := range list(t, "./...") {
		room, floor := roomOf(p.name())
		if room == "" {
			t.Errorf("%s stands on no floor: give it a line in the table", p.name())
			continue
		}
		for _, imp := range p.Imports {
			name, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if below, f := roomOf(name); below != room && f >= floor {
				t.Errorf("%s (floor %d) imports %s (floor %d): only downward, and no neighbour", p.name(), floor, name, f)
			}
		}
	}
}

func TestRules(t *testing.T) {
	direct, linked := list(t, "./..."), map[string][]pkg{}
	for _, r := range rules {
		if root, deps := strings.CutPrefix(r.pkg, "deps of "); deps {
			if linked[root] == nil {
				linked[root] = list(t, "-deps", "./"+root)
			}
			for _, p := range linked[root] {
				if within(p.ImportPath, r.mayNotImport) {
					t.Errorf("%s links %s: %s", root, p.ImportPath, r.why)
				}
			}
			continue
		}
		for _, p := range direct {
			for _, imp := range p.Imports {
				if r.covers(p.name()) && r.forbids(imp) {
					t.Errorf("%s imports %s: %s", p.name(), imp, r.why)
				}
			}
		}
	}
}

// TestAgentLinksStatically looks through other people's packages too: cgo in one
// of them would make the agent depend on a C library of the image.
func TestAgentLinksStatically(t *testing.T) {
	for _, p := range list(t, "-deps", "./cmd/diagon") {
		if !p.Standard && p.name() != "pkg/gpu/nvml" && slices.Contains(p.Imports, "C") {
			t.Errorf("cmd/diagon links %s, which uses cgo", p.ImportPath)
		}
	}
}

func TestRoomOf(t *testing.T) {
	for _, tt := range []struct {
		name, room string
		floor      int
	}{
		{"pkg/profile", "pkg/profile", 0},
		{"pkg/profile/pprofio", "pkg/profile/pprofio", 1},
		{"pkg/profiler", "", 0},
		{"pkg/collector", "pkg/collector", 1},
		{"pkg/collector/oncpu", "pkg/collector/oncpu", 2},
		{"pkg/collector/oncpu/tape", "pkg/collector/oncpu", 2},
		{"pkg/server/store/duckdb", "pkg/server", 4},
	} {
		if room, floor := roomOf(tt.name); room != tt.room || floor != tt.floor {
			t.Errorf("%s is in %q on floor %d, want %q on %d", tt.name, room, floor, tt.room, tt.floor)
		}
	}
}

// roomOf finds the longest line of the table that holds name.
func roomOf(name string) (room string, floor int) {
	for f, rooms := range floors {
		for _, r := range rooms {
			if parent, each := strings.CutSuffix(r, "/*"); each {
				child, below := strings.CutPrefix(name, parent+"/")
				if !below {
					continue
				}
				first, _, _ := strings.Cut(child, "/")
				r = parent + "/" + first
			}
			if within(name, r) && len(r) > len(room) {
				room, floor = r, f
			}
		}
	}
	return room, floor
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// A rule's package may not import something.
type rule struct{ pkg, mayNotImport, why string }

func (r rule) covers(name string) bool {
	others, not := strings.CutPrefix(r.pkg, "!")
	if !not {
		room, _ := roomOf(name)
		return within(name, r.pkg) && len(room) <= len(r.pkg)
	}
	for other := range strings.FieldsSeq(others) {
		if within(name, other) {
			return false
		}
	}
	return true
}

func (r rule) forbids(imp string) bool {
	if r.mayNotImport == "!std" {
		first, _, _ := strings.Cut(imp, "/")
		return strings.Contains(first, ".") // only a module's path begins with a host
	}
	return within(imp, r.mayNotImport)
}

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// list asks with cgo on, so that files behind import "C" count.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports,Standard"}, args...)...)
	cmd.Dir = "../.."
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		pkgs = append(pkgs, p)
	}
}
