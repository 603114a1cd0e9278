// SPDX-License-Identifier: Apache-2.0

package query

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
	"diagon.dev/diagon/pkg/server/store/duckdb"
)

// serve answers from a real store that holds two nodes' batches.
func serve(t *testing.T, cfg Config) *httptest.Server {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	dbConfig := duckdb.DefaultConfig(t.TempDir())
	dbConfig.MemoryBytes, dbConfig.FreeBytes = 128<<20, 0
	st, err := duckdb.Open(t.Context(), dbConfig, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	for i, node := range []string{"a", "b"} {
		b := store.Batch{Node: node, BootID: "boot", Sequence: 1}
		b.Start = noon.Add(-time.Minute)
		b.End = b.Start.Add(10 * time.Second)
		for _, w := range sample.Stacks {
			r := profile.Record{Subject: &profile.Subject{PID: 7 + i, Comm: "busy"}, Stack: w.Stack}
			r.Values[profile.CPU] = w.Value * 1e6 // milliseconds, or pprof drops them as too small to print
			b.Records = append(b.Records, r)
		}
		b.Readings = []profile.Reading{{Time: b.Start, Metric: "host_load", Value: 1.5 + float64(i)}}
		b.Losses = []profile.Loss{{Place: "ring", Count: 3}}
		if err := st.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(Handler(st, cfg, log))
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, url string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(all)
}

func TestHandler(t *testing.T) {
	server := serve(t, testConfig())
	for _, tt := range []struct {
		name, path string
		status     int
		want       string // contained in the answer
	}{
		{"types that have data", "types", 200, `{"types":[{"name":"cpu","unit":"nanoseconds"}]}`},
		{"types where nothing is", `types?query={node="c"}`, 200, `{"types":[]}`},
		{"labels", "labels", 200, `{"labels":["comm","node","pid"]}`},
		{"values of a label", "labels/node/values", 200, `{"cut":false,"values":["a","b"]}`},
		{"values of a label, cut", "labels/node/values?limit=1", 200, `{"cut":true,"values":["a"]}`},
		{"metrics", "labels/__name__/values", 200, `{"cut":false,"values":["host_load"]}`},
		{"a flame graph of both nodes", "profiles", 200, `"total":200000000,`},
		{"a flame graph of one node", `profiles?query={node="a"}`, 200, `"total":100000000,`},
		{"the losses beside it", `profiles?query={node="a"}`, 200, `"losses":[{"node":"a","place":"ring","count":3}]`},
		{"the time of a flame graph", "profiles", 200, `"from":"2026-03-01T11:55:00Z","to":"2026-03-01T12:00:00Z"`},
		{"a cut flame graph says so", "profiles?max_nodes=2", 200, `"cut":{"nodes":`},
		{"a table", "profiles?format=top", 200, `{"function":"spin","module":"busy","file":"spin.c","realm":"user","self":100000000,"total":100000000}`},
		{"folded text", "profiles?format=folded", 200, "main;outer;inner;sys_read_[k] 18000000\n"},
		{"a speedscope file", "profiles?format=speedscope", 200, `"$schema":"https://www.speedscope.app/file-format-schema.json"`},
		{"a diff", `diff?query={node="a"}&base_query={node=~".*"}`, 200, `"base_total":200000000,`},
		{"a folded diff", `diff?query={node="a"}&base_query={}&format=folded`, 200, "main;work;spin 100000000 50000000\n"},
		{"a series of readings", `series?metric=host_load&query={node="b"}`, 200,
			`{"cut":false,"series":[{"metric":"host_load","labels":{"node":"b"},"points":[[1772366340000,2.5]]}]}`},
		{"a series of a sample type, per second", `series?metric=cpu&query={node="a"}&step=1m`, 200,
			`{"metric":"cpu","labels":{"node":"a"},"points":[[1772366340000,10000000]]}`},
		{"no such metric", "series?metric=nonesuch", 200, `{"cut":false,"series":[]}`},

		{"no metric", "series", 400, "metric is missing"},
		{"no such type", "profiles?type=wall", 400, "there is no such sample type: give one of samples, cpu"},
		{"no such format", "profiles?format=svg", 400, "give one of flamegraph, top, pprof"},
		{"a diff has fewer formats", "diff?format=pprof", 400, "give one of flamegraph, folded"},
		{"too many nodes", "profiles?max_nodes=999999999", 400, "give a number from 1 to"},
		{"a bad matcher", "profiles?query={node}", 400, "give label matchers"},
		{"a step too short", "series?metric=cpu&from=now-7d&step=1s", 400, "give a step of"},
		{"a step longer than any", "series?metric=cpu&step=10000h", 400, "from 1ms to 366d"},
		{"a mistyped parameter", "profiles?typ=cpu", 400, "there is no such one here: give some of query, from, to, capture, type, format, max_nodes"},
		{"no such path", "nonesuch", 404, "/api/v1/nonesuch: no such call"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, header, body := get(t, server.URL+"/api/v1/"+tt.path)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("answered %d %s\nwant %d with %s", status, body, tt.status, tt.want)
			}
			if header.Get("Cache-Control") != "no-store" {
				t.Error("the answer may be cached")
			}
			if status >= 400 {
				var e struct{ Error string }
				if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error == "" {
					t.Errorf("the error is no JSON: %s", body)
				}
			}
		})
	}
}

func TestOnlyGetIsAnswered(t *testing.T) {
	server := serve(t, testConfig())
	resp, err := http.Post(server.URL+"/api/v1/types", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST was answered %d", resp.StatusCode)
	}
}

func TestAnswersAreCompressedForWhoTakesIt(t *testing.T) {
	server := serve(t, testConfig())
	for _, tt := range []struct{ path, encoding string }{
		{"diff", "gzip"},
		{"profiles?format=pprof", ""}, // it is compressed already
		{"types", ""},                 // too short to be worth it
	} {
		req, err := http.NewRequest(http.MethodGet, server.URL+"/api/v1/"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Encoding"); got != tt.encoding {
			t.Errorf("%s: Content-Encoding is %q, want %q", tt.path, got, tt.encoding)
		}
		if tt.encoding == "gzip" {
			if _, err := gzip.NewReader(resp.Body); err != nil {
				t.Errorf("%s: %v", tt.path, err)
			}
		}
	}
}

func TestGoToolPprofOpensTheURL(t *testing.T) {
	server := serve(t, testConfig())
	for _, query := range []string{`{node="a"}`, `%7Bnode%3D%22a%22%7D`} {
		cmd := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", server.URL+"/api/v1/profiles?type=cpu&format=pprof&query="+query)
		cmd.Env = append(cmd.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{"Type: cpu", "50ms 50.00% 50.00%       50ms 50.00%  spin"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("go tool pprof says\n%s\nwant %q", out, want)
			}
		}
	}
}

func TestTooManyStacksSayWhatToDo(t *testing.T) {
	cfg := testConfig()
	cfg.MaxStacks = 3
	status, _, body := get(t, serve(t, cfg).URL+"/api/v1/profiles")
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, "more than 3 stacks: ask for less time, or select by labels") {
		t.Errorf("answered %d %s", status, body)
	}
}

func TestAQuestionHasADeadline(t *testing.T) {
	cfg := testConfig()
	cfg.Timeout = time.Nanosecond
	status, _, body := get(t, serve(t, cfg).URL+"/api/v1/profiles")
	if status != http.StatusGatewayTimeout || !strings.Contains(body, "not answered within 1ns: ask for less time") {
		t.Errorf("answered %d %s", status, body)
	}
}

// slow is a store whose questions last until they are let go.
type slow struct {
	store.Store
	asked, done chan struct{}
}

func (s slow) Types(ctx context.Context, _ store.Selection) ([]profile.Type, error) {
	s.asked <- struct{}{}
	select {
	case <-s.done:
		return nil, nil
	case <-ctx.Done():
		return nil, errors.New("not let go")
	}
}

func TestTooManyQuestionsAreToldToComeAgain(t *testing.T) {
	cfg := testConfig()
	cfg.MaxQueries = 1
	s := slow{asked: make(chan struct{}), done: make(chan struct{})}
	h := Handler(s, cfg, slog.New(slog.DiscardHandler))
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/types", nil))
		return w
	}
	first := make(chan *httptest.ResponseRecorder, 1)
	go func() { first <- ask() }()
	<-s.asked
	if second := ask(); second.Code != http.StatusServiceUnavailable || second.Header().Get("Retry-After") == "" {
		t.Errorf("the second was answered %d %s", second.Code, second.Body)
	}
	close(s.done)
	if w := <-first; w.Code != http.StatusOK {
		t.Errorf("the first was answered %d %s", w.Code, w.Body)
	}
}

func TestLargeAnswersAreFewAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		cost func(params) int64
		raw  string
		want int // at once
	}{
		{"lists", costOfList, "", 16},
		{"flame graphs as a page draws them", costOfProfile, "max_nodes=8192", 8},
		{"large flame graphs", costOfProfile, "max_nodes=100000", 2},
		{"whole profiles", costOfProfile, "format=pprof", 2},
		{"diffs", costOfDiff, "", 4},
		{"large diffs", costOfDiff, "format=folded", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parseParams(tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			a := newAdmission(DefaultConfig().MaxQueries)
			for got := range 17 {
				leave, ok := a.enter(tt.cost(p))
				if ok {
					defer leave()
					continue
				}
				if got != tt.want {
					t.Errorf("%d at once, want %d", got, tt.want)
				}
				return
			}
			t.Error("there is no end to them")
		})
	}
}

func TestALargeAnswerIsGivenByAServerOfOneQuestion(t *testing.T) {
	if _, ok := newAdmission(1).enter(costLarge); !ok {
		t.Error("refused although nothing else runs")
	}
}
