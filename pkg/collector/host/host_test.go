// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/collectortest"
	"diagon.dev/diagon/pkg/profile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var start = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// snapshotOf reads a tree under testdata as it was seconds after start.
func snapshotOf(t *testing.T, tree string, seconds int) snapshot {
	t.Helper()
	proc, err := open(tree)
	if err != nil {
		t.Fatal(err)
	}
	return proc.read(start.Add(time.Duration(seconds) * time.Second))
}

// text writes readings one a line as Prometheus does.
func text(all []profile.Reading) string {
	var b strings.Builder
	for _, r := range all {
		var labels []string
		for _, l := range r.Labels {
			labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
		}
		fmt.Fprintf(&b, "%s{%s} %.9g\n", r.Metric, strings.Join(labels, ","), r.Value)
	}
	return b.String()
}

func TestReadings(t *testing.T) {
	before := snapshotOf(t, "testdata/before", 0)
	after := snapshotOf(t, "testdata/after", 10)
	for _, tt := range []struct {
		name        string
		before, now snapshot
		devices     int
		golden      string
	}{
		{name: "the first reading has no rates", now: before, devices: 32, golden: "first.txt"},
		{name: "the second has the rates of the time between", before: before, now: after, devices: 32, golden: "second.txt"},
		{name: "only the busiest devices are told one by one", before: before, now: after, devices: 1, golden: "busiest.txt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := text(readings(tt.before, tt.now, tt.devices))
			golden := filepath.Join("testdata", tt.golden)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetricsDescribeEveryReading(t *testing.T) {
	now := snapshotOf(t, "testdata/after", 10)
	now.unreadable = []string{"stat"}
	seen := make(map[string][]string)
	for _, r := range readings(snapshotOf(t, "testdata/before", 0), now, 32) {
		var labels []string
		for _, l := range r.Labels {
			labels = append(labels, l.Name)
		}
		if !slices.IsSorted(labels) {
			t.Errorf("%s: labels %q are not sorted", r.Metric, labels)
		}
		seen[r.Metric] = labels
	}
	for _, d := range Metrics {
		labels, ok := seen[d.Name]
		if !ok {
			t.Errorf("%s is described and never read", d.Name)
		}
		if !slices.Equal(labels, d.Labels) {
			t.Errorf("%s has labels %q, described are %q", d.Name, labels, d.Labels)
		}
		delete(seen, d.Name)
	}
	for name := range seen {
		t.Errorf("%s is read and not described", name)
	}
}

// tree makes a procfs of a few files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReadingWhatIsNotThere(t *testing.T) {
	for _, tt := range []struct {
		name       string
		files      map[string]string
		unreadable []string
		has        string
	}{
		{name: "a kernel without pressure information is no error", files: map[string]string{"uptime": "5 9"}, has: "host_uptime_seconds{} 5\n"},
		{name: "a file that cannot be understood is told", files: map[string]string{"stat": "cpu  x", "uptime": "5 9"}, unreadable: []string{"stat"}, has: `host_unreadable{source="stat"} 1`},
		{name: "one broken file does not hide the others", files: map[string]string{"loadavg": "what", "uptime": "1 2"}, unreadable: []string{"loadavg"}, has: "host_uptime_seconds{} 1\n"},
		{name: "file-nr cut short is told", files: map[string]string{"sys/fs/file-nr": "12 0"}, unreadable: []string{"sys/fs/file-nr"}},
		{name: "an uptime that is no number is told", files: map[string]string{"uptime": "NaN 0"}, unreadable: []string{"uptime"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := snapshotOf(t, tree(t, tt.files), 0)
			if !slices.Equal(s.unreadable, tt.unreadable) {
				t.Errorf("unreadable %q, want %q", s.unreadable, tt.unreadable)
			}
			if got := text(readings(snapshot{}, s, 32)); !strings.Contains(got, tt.has) {
				t.Errorf("readings\n%s\nwant one saying %q", got, tt.has)
			}
		})
	}
}

func TestNetworkOfProcess1ComesFirst(t *testing.T) {
	const head = "Inter-|   Receive\n face |bytes\n"
	ours := map[string]string{"net/dev": head + " pod0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"}
	if _, ok := snapshotOf(t, tree(t, ours), 0).network["pod0"]; !ok {
		t.Error("without process 1 our own devices are not read")
	}
	ours["1/net/dev"] = head + " eth0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
	network := snapshotOf(t, tree(t, ours), 0).network
	if _, ok := network["eth0"]; !ok || len(network) != 1 {
		t.Errorf("devices %v, want those of process 1", network)
	}
}

func TestIsPartition(t *testing.T) {
	disks := map[string]bool{"sda": true, "nvme0n1": true, "mmcblk0": true, "md127": true, "dm-0": true, "sdap": true}
	for name, want := range map[string]bool{
		"sda1": true, "nvme0n1p2": true, "mmcblk0p1": true, "md127p3": true,
		"sda": false, "nvme0n1": false, "dm-0": false, "xvda1": false, "nvme1n1p1": false, "md127": false, "": false, "7": false, "p1": false,
	} {
		if got := isPartition(name, disks); got != want {
			t.Errorf("isPartition(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		err    string
	}{
		{name: "the default is valid", change: func(*Config) {}},
		{name: "an interval below a second", change: func(c *Config) { c.Interval = time.Millisecond }, err: "interval:"},
		{name: "an interval of hours", change: func(c *Config) { c.Interval = time.Hour }, err: "interval:"},
		{name: "no devices", change: func(c *Config) { c.Devices = 0 }, err: "devices:"},
		{name: "no path", change: func(c *Config) { c.Proc = "" }, err: "proc:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			err := cfg.Validate()
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.err)) {
				t.Errorf("Validate = %v, want %q", err, tt.err)
			}
		})
	}
}

func TestPromises(t *testing.T) {
	collectortest.Promises(t, New(DefaultConfig(), func(profile.Reading) {}))
}

func TestUnavailableWithoutProcfs(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Proc = filepath.Join(t.TempDir(), "proc")
	err := New(cfg, func(profile.Reading) {}).Run(t.Context(), nil)
	if !errors.Is(err, collector.ErrUnavailable) {
		t.Errorf("Run = %v, want ErrUnavailable", err)
	}
}

// TestThisMachine runs the collector on the real /proc and holds its answers
// against what must be true of any machine.
func TestThisMachine(t *testing.T) {
	var mu sync.Mutex
	sum := make(map[string]float64)
	cfg := DefaultConfig()
	cfg.Interval = time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	err := New(cfg, func(r profile.Reading) {
		mu.Lock()
		defer mu.Unlock()
		sum[r.Metric] += r.Value
	}).Run(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := sum[cpuRatio]; got < 0.999 || got > 1.001 {
		t.Errorf("the CPU's modes add up to %v, want 1", got)
	}
	if sum[memoryUsed] <= 0 || sum[memoryUsed] >= sum[memoryTotal] {
		t.Errorf("%v of %v bytes of memory used", sum[memoryUsed], sum[memoryTotal])
	}
	if sum[uptime] <= 0 || sum[filesOpen] <= 0 || sum[contextSwitches] <= 0 {
		t.Errorf("uptime %v, files %v, context switches %v: want more than 0", sum[uptime], sum[filesOpen], sum[contextSwitches])
	}
	if n := sum[unreadable]; n != 0 {
		t.Errorf("%v sources could not be read", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1382\t0\t2466112\n")
	f.Add("86400.00 300000.00\n")
	f.Fuzz(func(t *testing.T, raw string) {
		if seconds, err := parseUptime(raw); err == nil && !(seconds >= 0) {
			t.Errorf("uptime %v", seconds)
		}
		if files, err := parseFileNr(raw); err == nil && files == nil {
			t.Error("no files and no error")
		}
	})
}
