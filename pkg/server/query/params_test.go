// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{text: "now", want: "2026-03-01T12:00:00Z"},
		{text: "now-5m", want: "2026-03-01T11:55:00Z"},
		{text: "now-1d", want: "2026-02-28T12:00:00Z"},
		{text: "now-1h30m", want: "2026-03-01T10:30:00Z"},
		{text: "now+10s", want: "2026-03-01T12:00:10Z"},
		{text: "now 10s", want: "2026-03-01T12:00:10Z"},
		{text: "2026-03-01T13:00:00+02:00", want: "2026-03-01T11:00:00Z"},
		{text: "2026-03-01T11:00:00.25Z", want: "2026-03-01T11:00:00.25Z"},
		{text: "1772366400", want: "2026-03-01T12:00:00Z"},
		{text: "1772366400.5", want: "2026-03-01T12:00:00.5Z"},
		{text: "0", want: "1970-01-01T00:00:00Z"},
		{text: "1772366400000", err: "milliseconds"},
		{text: "-5", err: "seconds since 1970"},
		{text: "NaN", err: "seconds since 1970"},
		{text: "", err: "give now"},
		{text: "yesterday", err: "give now"},
		{text: "now-", err: "duration"},
		{text: "now-5", err: "duration"},
		{text: "now*5m", err: "after now comes"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseTime(tt.text, noon)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want one saying %q", err, tt.err)
				}
				return
			}
			if err != nil || stamp(got) != tt.want {
				t.Errorf("got %s, %v, want %s", stamp(got), err, tt.want)
			}
		})
	}
}

func TestParseSelector(t *testing.T) {
	for _, tt := range []struct{ name, text, want, err string }{
		{name: "nothing", text: "", want: ""},
		{name: "empty braces", text: " { } ", want: ""},
		{name: "one matcher", text: `{node="n"}`, want: `node="n"`},
		{name: "several, with a comma at the end", text: `{node="n", rank=~"1.*",comm!="a",pod!~"b",}`, want: `node="n" rank=~"1.*" comm!="a" pod!~"b"`},
		{name: "without braces", text: `node="n"`, want: `node="n"`},
		{name: "one that matches everything", text: `{rank=""}`, want: `rank=""`},
		{name: "single quotes", text: `{node='n'}`, want: `node="n"`},
		{name: "no quotes", text: `{node=n}`, err: "give label matchers"},
		{name: "not closed", text: `{node="n"`, err: "give label matchers"},
		{name: "a pattern that is none", text: `{node=~"("}`, err: "give label matchers"},
		{name: "a metric", text: `cpu{node="n"}`, err: "give label matchers"},
		{name: "a metric as a label", text: `{__name__="cpu"}`, err: "parameter type"},
		{name: "a second selector", text: `{node="n"} or x{a="b"}`, err: "give label matchers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseSelector(tt.text)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want one saying %q", err, tt.err)
				}
				return
			}
			var words []string
			for _, m := range got {
				words = append(words, m.String())
			}
			if text := strings.Join(words, " "); err != nil || text != tt.want {
				t.Errorf("got %s, %v, want %s", text, err, tt.want)
			}
		})
	}
}

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.Now = func() time.Time { return noon }
	return cfg
}

func TestSelectionOfAURL(t *testing.T) {
	for _, tt := range []struct{ name, raw, prefix, want, err string }{
		{name: "the last five minutes", raw: "", want: "2026-03-01T11:55:00Z 2026-03-01T12:00:00Z"},
		{name: "five minutes up to an end", raw: "to=now-1h", want: "2026-03-01T10:55:00Z 2026-03-01T11:00:00Z"},
		{name: "a range", raw: "from=now-1h&to=now-30m", want: "2026-03-01T11:00:00Z 2026-03-01T11:30:00Z"},
		{name: "a capture, whenever it was", raw: "capture=x", want: "2026-01-29T13:00:00Z 2026-03-01T13:00:00Z"},
		{name: "the base of a diff has its own time", raw: "from=now-1h&base_from=now-2h&base_to=now-1h", prefix: "base_", want: "2026-03-01T10:00:00Z 2026-03-01T11:00:00Z"},
		{name: "or the other side's", raw: "from=now-1h", prefix: "base_", want: "2026-03-01T11:00:00Z 2026-03-01T12:00:00Z"},
		{name: "matchers as people type them", raw: `query={node="n",comm=~"a;b|c"}`, want: `2026-03-01T11:55:00Z 2026-03-01T12:00:00Z node="n" comm=~"a;b|c"`},
		{name: "matchers escaped", raw: `query=%7Bnode%3D%22n%22%7D`, want: `2026-03-01T11:55:00Z 2026-03-01T12:00:00Z node="n"`},
		{name: "backwards", raw: "from=now&to=now-1h", err: "is not before"},
		{name: "too long", raw: "from=now-1y", err: "is too long"},
		{name: "a bad time", raw: "from=then", err: "from: time"},
		{name: "a bad base", raw: "base_from=then", prefix: "base_", err: "base_from: time"},
		{name: "a bad escape", raw: "query=%zz", err: "%25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parseParams(tt.raw)
			got := ""
			if err == nil {
				sel, e := p.selection(testConfig(), tt.prefix)
				got, err = stamp(sel.From)+" "+stamp(sel.To), e
				for _, m := range sel.Matchers {
					got += " " + m.String()
				}
			}
			if tt.err != "" {
				var bad requestError
				if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want the asker's fault, saying %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"now", "now-5m", "1772366400.5", "2026-03-01T13:00:00+02:00", "now-9999999y", "1e308"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseTime(text, noon)
		if err == nil && got.IsZero() && !strings.HasPrefix(text, "0001") {
			t.Errorf("%q is no time and no error", text)
		}
		if step, err := parseStep(text); err == nil && (step < minStep || step > maxStep) {
			t.Errorf("%q is a step of %v", text, step)
		}
	})
}

func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{`{node="n"}`, `{rank=~"1.*",}`, `{a="\n"}`, "{", `{"a b"="c"}`, `x{y="z"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		matchers, err := ParseSelector(text)
		if err != nil {
			return
		}
		for _, m := range matchers {
			m.Matches("x")
			if m.Name == "__name__" {
				t.Errorf("%q selects by metric", text)
			}
		}
	})
}

func FuzzParams(f *testing.F) {
	for _, seed := range []string{`query={node="n"}&from=now-5m&to=now&step=15s&max_nodes=9`, "type=cpu&format=top", "%", "step=NaN", "step=1e-300", "capture=x&from=0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := parseParams(raw)
		if err != nil {
			return
		}
		cfg := testConfig()
		sel, err := p.selection(cfg, "")
		if err != nil {
			return
		}
		if length := sel.To.Sub(sel.From); length <= 0 || length > cfg.MaxRange {
			t.Errorf("%q selects %v", raw, length)
		}
		if step, err := p.step(sel, cfg.MaxPoints); err == nil && (step <= 0 || sel.To.Sub(sel.From)/step > time.Duration(cfg.MaxPoints)) {
			t.Errorf("%q has steps of %v", raw, step)
		}
		if n, err := p.count("max_nodes", defaultNodes, cfg.MaxNodes); err == nil && (n < 1 || n > cfg.MaxNodes) {
			t.Errorf("%q asks for %d nodes", raw, n)
		}
	})
}
