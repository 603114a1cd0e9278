// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/server/registry"
	"diagon.dev/diagon/pkg/server/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// testConfig is a server of its own on free ports, that wants little of the disk.
func testConfig(t *testing.T) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.HTTP, cfg.GRPC, cfg.Data = "127.0.0.1:0", "127.0.0.1:0", t.TempDir()
	cfg.Spare = 0
	return cfg
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// testLog writes where a failing test shows it.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func dial(t *testing.T, addr string, creds credentials.TransportCredentials) diagonv1.DiagnosticsClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return diagonv1.NewDiagnosticsClient(conn)
}

// An agent is a scripted one: it says what the test says and keeps what it hears.
type agent struct {
	t      *testing.T
	client diagonv1.DiagnosticsClient
	node   string
	boot   string
	beats  uint64
	stream grpc.BidiStreamingClient[diagonv1.DaemonMessage, diagonv1.BackendMessage]
	heard  chan *diagonv1.BackendMessage
	gone   chan error // why the stream ended
	cancel context.CancelFunc
}

func connect(t *testing.T, client diagonv1.DiagnosticsClient, node, instance string, known ...*diagonv1.CaptureUpdate) *agent {
	t.Helper()
	a := &agent{t: t, client: client, node: node, boot: "boot-" + node, heard: make(chan *diagonv1.BackendMessage, 100), gone: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	a.cancel = cancel
	t.Cleanup(cancel)
	var err error
	if a.stream, err = client.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	a.say(&diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Registration{Registration: &diagonv1.DaemonRegistrationRequest{
		Node: node, BootId: a.boot, InstanceId: instance, AgentVersion: "test", Captures: known,
		Capabilities: []*diagonv1.Capability{{Name: "oncpu", Available: true}}, Host: map[string]string{"kernel": "6.18"},
	}}})
	go func() {
		for {
			m, err := a.stream.Recv()
			if err != nil {
				a.gone <- err
				return
			}
			a.heard <- m
		}
	}()
	return a
}

func (a *agent) say(m *diagonv1.DaemonMessage) {
	a.t.Helper()
	if err := a.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		a.t.Fatal(err)
	}
}

// hear waits for the next message that is of type T.
func hear[T any](a *agent) T {
	a.t.Helper()
	end := time.After(10 * time.Second)
	for {
		select {
		case m := <-a.heard:
			if want, ok := m.GetMessage().(T); ok {
				return want
			}
		case err := <-a.gone:
			a.t.Fatalf("stream ended: %v", err)
		case <-end:
			var want T
			a.t.Fatalf("no %T within 10 s", want)
		}
	}
}

// ends waits for the end of the stream.
func (a *agent) ends() error {
	a.t.Helper()
	select {
	case err := <-a.gone:
		return err
	case <-time.After(20 * time.Second):
		a.t.Fatal("the stream did not end within 20 s")
		return nil
	}
}

func (a *agent) beat(full bool, set func(*diagonv1.DaemonHeartbeatRequest)) {
	a.t.Helper()
	a.beats++
	hb := &diagonv1.DaemonHeartbeatRequest{Sequence: a.beats, Full: full, TimeUnixNano: time.Now().UnixNano()}
	if set != nil {
		set(hb)
	}
	a.say(&diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Heartbeat{Heartbeat: hb}})
}

func (a *agent) report(id string, state diagonv1.CaptureState, message string, artifacts ...string) {
	a.t.Helper()
	a.say(&diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_CaptureUpdate{CaptureUpdate: &diagonv1.CaptureUpdate{
		Id: id, State: state, Message: message, Artifacts: artifacts}}})
}

// sampled is a profile of n samples of 1 ms in main;spin.
func sampled(n int64) *profile.Batch {
	m := &profile.Mapping{Path: "/bin/busy", BuildID: "ab"}
	main := &profile.Location{Mapping: m, Offset: 0x10, Lines: []profile.Line{{Function: "main"}}}
	spin := &profile.Location{Mapping: m, Offset: 0x20, Lines: []profile.Line{{Function: "spin"}}}
	now := time.Now()
	r := profile.Record{Subject: &profile.Subject{PID: 7, Comm: "busy"}, Stack: profile.Stack{{Location: spin, Address: 0x20}, {Location: main, Address: 0x10}}}
	r.Values[profile.Samples], r.Values[profile.CPU] = n, n*int64(time.Millisecond)
	return &profile.Batch{Start: now.Add(-time.Second), End: now, Records: []profile.Record{r}, PeriodNS: int64(time.Millisecond)}
}

var (
	packer, _  = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// batch is what an agent sends: n samples.
func batch(t testing.TB, node string, sequence uint64, n int64) *diagonv1.Batch {
	t.Helper()
	p := sampled(n)
	raw, err := pprofio.Marshal(p, pprofio.Meta{Node: node, AgentVersion: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return sealed(&diagonv1.Batch{
		Node: node, BootId: "boot-" + node, Sequence: sequence, Samples: uint64(n),
		StartUnixNano: p.Start.UnixNano(), EndUnixNano: p.End.UnixNano(),
		ProfileZstd: packer.EncodeAll(raw, nil),
	})
}

func sealed(b *diagonv1.Batch) *diagonv1.Batch {
	b.Crc32C = crc32.Checksum(b.ProfileZstd, castagnoli)
	return b
}

// push sends batches on a stream of their own and returns the last answer and the stream's end.
func push(t testing.TB, client diagonv1.DiagnosticsClient, batches ...*diagonv1.Batch) (durable uint64, rejected []*diagonv1.RejectedBatch, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := client.PushProfiles(ctx)
	if err != nil {
		return 0, nil, err
	}
	for _, b := range batches {
		if err := stream.Send(&diagonv1.PushProfilesRequest{Batch: b}); err != nil {
			break // the reason comes by Recv
		}
	}
	_ = stream.CloseSend()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return durable, rejected, nil
		}
		if err != nil {
			return durable, rejected, err
		}
		durable = max(durable, r.GetDurableSequence())
		rejected = append(rejected, r.GetRejected()...)
	}
}

// stored is the sum of CPU samples in the store.
func stored(t testing.TB, s *Server, capture string) int64 {
	t.Helper()
	w, err := s.store.Stacks(t.Context(), profile.Samples, store.Selection{
		From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Capture: capture}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, st := range w.Stacks {
		sum += st.Value
	}
	return sum
}

// call asks the HTTP API and reads the answer into out.
func call(t *testing.T, s *Server, method, path, body string, want int, out any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Fatalf("%s %s = %d, want %d: %s", method, path, resp.StatusCode, want, raw)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, raw)
	}
}

// client keeps no connection open behind a test's back.
func client(t *testing.T) *http.Client {
	t.Helper()
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
}

func nodeOf(t *testing.T, s *Server, name string) registry.Node {
	t.Helper()
	n, err := s.registry.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("did not happen within 15 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAnAgentRegistersAndPushes(t *testing.T) {
	s := start(t, testConfig(t))
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	a := connect(t, c, "n1", "i1")
	r := hear[*diagonv1.BackendMessage_Registration](a).Registration
	if r.GetHeartbeatIntervalMs() != 15_000 || r.GetServer() != s.cfg.Name || r.GetDurableSequence() != 0 {
		t.Errorf("registration answered %v", r)
	}
	durable, rejected, err := push(t, c, batch(t, "n1", 1, 10), batch(t, "n1", 2, 20))
	if err != nil || durable != 2 || len(rejected) > 0 {
		t.Fatalf("push = %d, %v, %v", durable, rejected, err)
	}
	if got := stored(t, s, ""); got != 30 {
		t.Errorf("the store holds %d samples, want 30", got)
	}
	if got := get(t, s, `/api/v1/profiles?type=samples&query={node="n1"}&format=folded`); got != "main;spin 30\n" {
		t.Errorf("folded: %q", got)
	}
	var nodes struct{ Nodes []registry.Node }
	call(t, s, "GET", "/api/v1/nodes", "", 200, &nodes)
	if len(nodes.Nodes) != 1 || !nodes.Nodes[0].Connected || nodes.Nodes[0].Host["kernel"] != "6.18" {
		t.Errorf("nodes = %+v", nodes)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		call(t, s, "GET", path, "", 200, nil)
	}
}

// get is an answer as it is.
func get(t *testing.T, s *Server, path string) string {
	t.Helper()
	resp, err := client(t).Get(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
