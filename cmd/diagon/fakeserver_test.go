// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"diagon.dev/diagon/cmd/diagon/internal/client"
)

// startFakeServer is the script command `server [KIND]`: it starts a server that speaks
// docs/http-api.md and points DIAGON_SERVER at it. Kinds: none; "stranger", which is
// no diagon server; "liar", whose artifacts are not what it announced.
func startFakeServer(ts *testscript.TestScript, neg bool, args []string) {
	kind := strings.Join(args, "")
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") })
	if kind != "stranger" {
		handler = (&fakeServer{liar: kind == "liar", captures: make(map[string]*fakeCapture)}).mux()
	}
	s := httptest.NewServer(handler)
	ts.Defer(s.Close)
	ts.Setenv("DIAGON_SERVER", s.URL)
}

// A fakeServer has two nodes, n1 and n2, a fixed profile, and captures that go one state
// further each time they are asked for.
type fakeServer struct {
	liar     bool
	mu       sync.Mutex
	captures map[string]*fakeCapture
	order    []string
}

type fakeCapture struct {
	client.Capture
	endless bool
}

func (s *fakeServer) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes", s.nodes)
	mux.HandleFunc("GET /api/v1/profiles", s.profiles)
	mux.HandleFunc("POST /api/v1/captures", s.start)
	mux.HandleFunc("GET /api/v1/captures", s.list)
	mux.HandleFunc("GET /api/v1/captures/{id}", s.show)
	mux.HandleFunc("DELETE /api/v1/captures/{id}", s.cancel)
	mux.HandleFunc("GET /api/v1/captures/{id}/artifacts/{name}", s.artifact)
	return mux
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, map[string]string{"error": fmt.Sprintf(format, args...)})
}

func (s *fakeServer) nodes(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"nodes": []client.Node{
		{Name: "n2", AgentVersion: "1.2.3", LastHeartbeat: time.Now().Add(-3 * time.Hour), Health: client.Health{Status: "unknown"}},
		{Name: "n1", Connected: true, AgentVersion: "1.2.3", LastHeartbeat: time.Now(), Host: map[string]string{"kernel": "6.1.0"},
			Capabilities: []client.Capability{{Name: "oncpu", Available: true}, {Name: "kernel-symbols", Reason: "zeros"}},
			Health:       client.Health{Status: "degraded", Message: "the disk is full"}, Losses: []client.Loss{{Place: "ring", Count: 7}, {Place: "exited", Count: 5}}},
	}})
}

func (s *fakeServer) profiles(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Get("query") == "{":
		refuse(w, http.StatusBadRequest, "query: unexpected end of input; want label matchers such as {node=\"n1\"}")
	case q.Get("format") == "folded":
		fmt.Fprintf(w, "main;hot 750\nmain;warm 250\n")
	case q.Get("format") == "top" && q.Get("query") == `{node="nobody"}`:
		answer(w, http.StatusOK, client.Top{Type: "cpu", Unit: "nanoseconds"})
	case q.Get("format") == "top":
		answer(w, http.StatusOK, client.Top{Type: q.Get("type"), Unit: "nanoseconds", Total: 4e9, Cut: &client.Cut{Nodes: 1200, Value: 5e8},
			Rows:   []client.Row{{Function: "hot", Module: "busy", Self: 3e9, Total: 3e9}, {Function: "warm", Module: "busy", Self: 1e9, Total: 1e9}, {Function: "main", Module: "busy", Total: 4e9}},
			Losses: []client.Loss{{Node: "n1", Place: "ring", Count: 12345}, {Node: "n1", Place: "exec", Count: 7}}})
	default:
		fmt.Fprint(w, q.Encode())
	}
}

// start knows durations that mean something: 1s succeeds, 2s fails on n2, 1h never ends.
func (s *fakeServer) start(w http.ResponseWriter, r *http.Request) {
	var req client.CaptureRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &fakeCapture{endless: req.Duration == "1h0m0s", Capture: client.Capture{
		ID: fmt.Sprintf("c%d", len(s.order)+1), Kind: req.Kind, State: client.Pending, Message: "waits", Created: time.Now(),
		Deadline: time.Now().Add(time.Minute), DurationMS: 1000, Hz: req.Hz}}
	for _, node := range req.Targets.Nodes {
		if node != "n1" && node != "n2" {
			refuse(w, http.StatusNotFound, "targets.nodes: node %q: no such node", node)
			return
		}
		c.Targets = append(c.Targets, client.Target{Node: node, State: client.Pending, Message: "the order is on its way"})
	}
	if req.Duration == "2s" {
		c.Targets[len(c.Targets)-1].State, c.Targets[len(c.Targets)-1].Message = "BUSY", "another capture is running"
	}
	s.captures[c.ID] = c
	s.order = append(s.order, c.ID)
	answer(w, http.StatusCreated, c.Capture)
}

func content(node string) []byte { return []byte("profile of " + node + "\n") }

// step moves every target one state on.
func (c *fakeCapture) step() {
	open, good := false, 0
	for i := range c.Targets {
		t := &c.Targets[i]
		switch {
		case t.State == client.Pending:
			t.State, t.Message = client.Running, "samples at 99 Hz"
			open = true
		case t.State == client.Running && c.endless:
			open = true
		case t.State == client.Running:
			sum := sha256.Sum256(content(t.Node))
			t.State, t.Message = client.Succeeded, "100 samples"
			t.Artifacts = []client.Artifact{{Name: t.Node + ".cpu.pb.gz", Size: int64(len(content(t.Node))), SHA256: hex.EncodeToString(sum[:])}}
		}
		if t.State == client.Succeeded {
			good++
		}
	}
	switch {
	case open:
		c.State, c.Message = client.Running, "runs"
	case good == len(c.Targets):
		c.State, c.Message = client.Succeeded, "all targets succeeded"
	case good > 0:
		c.State, c.Message = "PARTIAL", "1 of 2 targets succeeded"
	default:
		c.State, c.Message = c.Targets[0].State, c.Targets[0].Message
	}
}

func (s *fakeServer) with(w http.ResponseWriter, r *http.Request, do func(*fakeCapture)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.captures[r.PathValue("id")]
	if c == nil {
		refuse(w, http.StatusNotFound, "capture %q: no such capture", r.PathValue("id"))
		return
	}
	do(c)
	answer(w, http.StatusOK, c.Capture)
}

func (s *fakeServer) show(w http.ResponseWriter, r *http.Request) {
	s.with(w, r, func(c *fakeCapture) { c.step() })
}

func (s *fakeServer) cancel(w http.ResponseWriter, r *http.Request) {
	s.with(w, r, func(c *fakeCapture) {
		c.State, c.Message, c.endless = client.Cancelled, "cancelled by a person", false
		for i := range c.Targets {
			c.Targets[i].State, c.Targets[i].Message = client.Cancelled, "cancelled by a person"
		}
	})
}

func (s *fakeServer) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []client.Capture{}
	for _, id := range s.order {
		list = append([]client.Capture{s.captures[id].Capture}, list...)
	}
	answer(w, http.StatusOK, map[string]any{"captures": list})
}

func (s *fakeServer) artifact(w http.ResponseWriter, r *http.Request) {
	body := content(strings.TrimSuffix(r.PathValue("name"), ".cpu.pb.gz"))
	if s.liar {
		body[0] ^= 1
	}
	w.Write(body)
}
