// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/uplink/uplinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bootA = "6cd0a1c1-7d44-4ac0-8a4e-e5a3bb1ff1f7"

// node is the agent around a session: it keeps the orders it is given and reports
// what it is told to.
type node struct {
	mu       sync.Mutex
	captures []*diagonv1.CaptureRequest
	cancels  []string
	settings []*diagonv1.Settings
	lost     map[string]uint64

	health       *diagonv1.Health
	losses       []*diagonv1.Loss
	capabilities []*diagonv1.Capability
	devices      []*diagonv1.Device
}

func (n *node) Capture(r *diagonv1.CaptureRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.captures = append(n.captures, r)
}

func (n *node) Cancel(id, reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cancels = append(n.cancels, id+": "+reason)
}

func (n *node) Settings(st *diagonv1.Settings) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settings = append(n.settings, st)
}

func (n *node) Registration() *diagonv1.DaemonRegistrationRequest {
	return &diagonv1.DaemonRegistrationRequest{AgentVersion: "test", Capabilities: n.Capabilities()}
}

func (n *node) Health() *diagonv1.Health {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health
}

func (n *node) Losses() []*diagonv1.Loss {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.losses
}

func (n *node) Capabilities() []*diagonv1.Capability {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.capabilities
}

func (n *node) Devices() []*diagonv1.Device {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.devices
}

func (n *node) lose(place string, count uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost == nil {
		n.lost = make(map[string]uint64)
	}
	n.lost[place] += count
}

func (n *node) lostAt(place string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost[place]
}

// change edits the node under its lock.
func (n *node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// quick is a Config whose waits are short enough for a test.
func quick(t testing.TB, address string) Config {
	cfg := DefaultConfig()
	cfg.Channel = address
	cfg.Data = t.TempDir()
	cfg.ConnectTimeout = 5 * time.Second
	cfg.AnswerTimeout = 5 * time.Second
	cfg.BackoffMin = 5 * time.Millisecond
	cfg.BackoffMax = 50 * time.Millisecond
	cfg.HeartbeatMin = 5 * time.Millisecond
	return cfg
}

// agent is a running session and its surroundings.
type agent struct {
	*Session
	*node
	log  *logBuffer
	stop func() // ends Run and waits for it; may be called twice
}

func start(t testing.TB, cfg Config) *agent { return startBoot(t, cfg, bootA, new(node)) }

func startBoot(t testing.TB, cfg Config, bootID string, n *node) *agent {
	t.Helper()
	return startAs(t, cfg, Identity{Node: "n1", BootID: bootID}, n)
}

func startAs(t testing.TB, cfg Config, id Identity, n *node) *agent {
	t.Helper()
	log := new(logBuffer)
	s, err := New(cfg, id, n, n, n.lose, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Run = %v, want nil once its context is done", err)
				}
			case <-time.After(5 * time.Second):
				t.Error("Run still runs 5 s after its context was done")
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return &agent{Session: s, node: n, log: log, stop: stop}
}

// batch is one whose contents tell it from all others.
func batch(i int) *diagonv1.Batch {
	return &diagonv1.Batch{
		StartUnixNano: int64(i), EndUnixNano: int64(i) + 1,
		ProfileZstd: bytes.Repeat([]byte(fmt.Sprintf("profile %d ", i)), 50),
		Samples:     uint64(i),
		Readings:    []*diagonv1.Reading{{Metric: "host_load1", Value: float64(i)}},
	}
}

// eventually waits until ok holds; the deadline is far beyond what is expected.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func flush(t testing.TB, a *agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := a.Flush(ctx); err != nil {
		t.Fatalf("%v\n%s", err, a.log)
	}
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestBatchesArriveInOrderAndLeaveTheSpool(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	a := start(t, quick(t, server.Address))
	const n = 100
	for i := range n {
		if err := a.PushBatch(batch(i)); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, a)

	got := state.Batches()
	if len(got) != n {
		t.Fatalf("the server holds %d batches, want %d", len(got), n)
	}
	for i, b := range got {
		if b.GetSamples() != uint64(i) || b.GetNode() != "n1" || b.GetBootId() != bootA {
			t.Errorf("batch %d = %d samples of %s %s", i, b.GetSamples(), b.GetNode(), b.GetBootId())
		}
		if i > 0 && b.GetSequence() != got[i-1].GetSequence()+1 {
			t.Errorf("sequence %d follows %d", b.GetSequence(), got[i-1].GetSequence())
		}
	}
	st := a.Stats()
	if st.BatchesAcked != n || st.SamplesAcked != n*(n-1)/2 || st.Spool.Batches != 0 || st.BytesSent == 0 {
		t.Errorf("stats = %+v", st)
	}
}
