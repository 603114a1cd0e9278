// SPDX-License-Identifier: Apache-2.0

// Package charts checks what the charts render. It is a module of its own: Helm
// weighs more than the rest of diagon. It has no code but this test.
package charts

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what is rendered into testdata")

func TestDiagon(t *testing.T) {
	for _, tt := range []struct {
		name   string
		golden string
		args   []string
	}{
		{"the defaults", "default", nil},
		{"every value that adds something", "full", []string{"-f", "testdata/full.values.yaml"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := render(t, "diagon", tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", "diagon."+tt.golden+".yaml"), got)
		})
	}
}

func TestDiagonRefuses(t *testing.T) {
	for _, tt := range []struct{ name, arg, want string }{
		{"a value that it does not have", "imagee.tag=x", "additional properties 'imagee' not allowed"},
		{"a port that is none", "http.port=70000", "http/port"},
		{"mutual TLS without a secret", "tls.mutual=true", "tls/secretName"},
		{"a monitor that cannot reach the agents", "podMonitor.enabled=true", "needs an http.host that Prometheus can reach"},
		{"another path at the server", "channel=host:1/other", "channel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := render(t, "diagon", "--set", tt.arg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want one saying %q", err, tt.want)
			}
		})
	}
}

// TestDiagonIsTheSeedsDaemonSet lets users of that manifest find everything where it was.
func TestDiagonIsTheSeedsDaemonSet(t *testing.T) {
	var want any
	read(t, "testdata/seed.yaml", &want)
	rendered, err := render(t, "diagon")
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(rendered, "\n---\n") {
		var got map[string]any
		if err := yaml.Unmarshal([]byte(doc), &got); err != nil {
			t.Fatal(err)
		}
		if got["kind"] == "DaemonSet" {
			for _, d := range lacks(want, got, "") {
				t.Error(d)
			}
			return
		}
	}
	t.Error("the chart renders no DaemonSet")
}

// lacks lists what of want is not in got. Lists are compared element by element.
func lacks(want, got any, path string) []string {
	var missing []string
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			missing = append(missing, lacks(v, g[k], path+"/"+k)...)
		}
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return []string{fmt.Sprintf("%s has %d elements, want %d", path, len(g), len(w))}
		}
		for i := range w {
			missing = append(missing, lacks(w[i], g[i], fmt.Sprintf("%s/%d", path, i))...)
		}
	default:
		if want != got {
			missing = append(missing, fmt.Sprintf("%s is %v, want %v", path, got, want))
		}
	}
	return missing
}

// render is what helm would install as release diagon into namespace diagon.
func render(t *testing.T, chart string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "helm", "template", "diagon", "./" + chart, "--namespace", "diagon"}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the chart renders now; if that is right, run go test -update and read the diff. Rendered:\n%s", path, got)
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
