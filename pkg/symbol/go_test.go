// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagon.dev/diagon/pkg/profile"
)

func TestGoProgramsReadAsTheirRuntimeTells(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
	}{
		{"as built", nil},
		{"stripped", []string{"-ldflags=-s -w"}},
		{"position-independent", []string{"-buildmode=pie"}},
		{"position-independent and stripped", []string{"-buildmode=pie", "-ldflags=-s -w"}},
		{"without paths of the machine it was built on", []string{"-trimpath"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "gowork")
			sh(t, "go", append(append([]string{"build", "-o", path}, tt.flags...), "./testdata/gowork")...)
			p := run(t, exec.CommandContext(t.Context(), path))

			var stack []profile.Frame
			var want []string
			for {
				line := p.line(t)
				if line == "end" {
					break
				}
				var physical bool
				var pc uint64
				var function, position string
				if _, err := fmt.Sscan(line, &physical, &pc, &function, &position); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if len(stack) == 0 {
					pc-- // the innermost frame of a sample is where it is, not where it returns to
				}
				if physical {
					stack = append(stack, user(pc)...)
				}
				want = append(want, function+" "+position)
			}
			if len(stack) == len(want) {
				t.Fatal("nothing is inlined in the test's program")
			}

			s, _ := start(t)
			var got []string
			for _, f := range resolve(t, s, p.Process.Pid, stack...) {
				for _, l := range f.Location.Lines {
					got = append(got, fmt.Sprintf("%s %s:%d", l.Function, l.File, l.Number))
				}
			}
			if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
				t.Errorf("stack\n got %s\n\nwant %s", g, w)
			}
		})
	}
}
