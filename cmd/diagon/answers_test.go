// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"diagon.dev/diagon/cmd/diagon/internal/client"
	"diagon.dev/diagon/cmd/diagon/internal/text"
)

// FuzzAnswers shows whatever a server may say: nothing panics, nothing steers the terminal, and
// no file is written elsewhere than beside the one asked for.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"type":"cpu","unit":"nanoseconds","total":4,"rows":[{"function":"hot","module":"busy","self":3,"total":9}],"cut":{"nodes":1,"value":-1},"losses":[{"place":"ring","count":1}]}`))
	f.Add([]byte(`{"id":"c1","state":"RUNNING","targets":[{"node":"../n1","state":"X","message":"\u001b[2J","artifacts":[{"name":"../../a/b.pb.gz","size":-1},{"name":""}]}]}`))
	f.Add([]byte(`{"name":"n","connected":true,"last_heartbeat":"2026-12-01T00:00:00Z","capabilities":[{"name":"x\n"}],"losses":[{"place":"","count":18446744073709551615}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out bytes.Buffer
		var top client.Top
		if json.Unmarshal(raw, &top) == nil {
			writeTop(&out, top, 0)
		}
		var node client.Node
		if json.Unmarshal(raw, &node) == nil {
			writeNodes(&out, []client.Node{node, node}, time.Unix(0, 0))
		}
		var capture client.Capture
		if json.Unmarshal(raw, &capture) == nil {
			follow := &follower{stderr: text.Writer(&out), said: make(map[string]string)}
			follow.tell(capture)
			nodesOf(capture)
			for _, target := range capture.Targets {
				for _, a := range target.Artifacts {
					if name := artifactFile("/some/where/out.pb.gz", target, a); filepath.Dir(name) != "/some/where" {
						t.Errorf("%q of %q would be written to %q", a.Name, target.Node, name)
					}
				}
			}
		}
		report(io.Discard, &client.StatusError{Text: string(raw)})
		for _, r := range out.String() {
			if unicode.IsControl(r) && r != '\n' {
				t.Errorf("%q reaches the terminal in %q", r, out.String())
			}
		}
	})
}

func TestArtifactFile(t *testing.T) {
	for _, tt := range []struct{ name, out, node, artifacts, want string }{
		{name: "the node comes before the end", out: "out.pb.gz", node: "n1", artifacts: "n1.cpu.pb.gz", want: "out.n1.pb.gz"},
		{name: "a folder's dot is none of the name's", out: "a.b/out", node: "n1", artifacts: "n1.cpu.pb.gz", want: "a.b/out.n1"},
		{name: "several files of a node keep their names", out: "out.pb.gz", node: "n1", artifacts: "n1.a.txt n1.b.txt", want: "out.n1.a.txt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := client.Target{Node: tt.node}
			for name := range strings.FieldsSeq(tt.artifacts) {
				target.Artifacts = append(target.Artifacts, client.Artifact{Name: name})
			}
			if got := artifactFile(tt.out, target, target.Artifacts[0]); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWordsForPeople(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ name, got, want string }{
		{"a share of all is all", share(7, 7), "100 %"},
		{"nearly all is not all", share(999_999, 1_000_000), "99.9 %"},
		{"a share of nothing", share(0, 0), "0 %"},
		{"thousands", thousands(1234567), "1,234,567"},
		{"hundreds", thousands(123), "123"},
		{"below zero", thousands(-1234), "-1,234"},
		{"seconds ago", ago(now.Add(-90*time.Second), now), "90s ago"},
		{"a clock that is ahead", ago(now.Add(time.Hour), now), "0s ago"},
		{"days ago", ago(now.Add(-72*time.Hour), now), "3d ago"},
		{"never", ago(time.Time{}, now), "never"},
		{"a minute", durationText(time.Minute), "1m"},
		{"an hour", durationText(time.Hour), "1h"},
		{"ten seconds", durationText(10 * time.Second), "10s"},
		{"twenty minutes", durationText(20 * time.Minute), "20m"},
		{"ninety seconds", durationText(90 * time.Second), "1m30s"},
		{"a plain name", shellWord("a/b-1.pb.gz"), "a/b-1.pb.gz"},
		{"a name with a space", shellWord("my file"), "'my file'"},
		{"a name with a quote", shellWord("it's"), `'it'\''s'`},
		{"an empty name", shellWord(""), "''"},
		{"less than a millisecond", amount(1500, "nanoseconds"), "1.5µs"},
		{"a count", amount(1500, "count"), "1,500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %q, want %q", tt.got, tt.want)
			}
		})
	}
}
