// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/agent/doctor"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/uplink/uplinktest"
)

// These tests run an agent in this process against a real server in another one, so that what
// the agent counted can be held against what the server stored, sample by sample.

var buildServer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "diagon-test-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "diagon-server")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "diagon.dev/diagon/cmd/diagon-server").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build diagon-server: %w\n%s", err, out)
	}
	return program, nil
})

// A realServer is a diagon-server that can be killed and started again on its ports and data.
type realServer struct {
	t          *testing.T
	http, grpc string
	data       string
	cmd        *exec.Cmd
}

func newServer(t *testing.T) *realServer {
	t.Helper()
	s := &realServer{t: t, http: freeAddress(t), grpc: freeAddress(t), data: t.TempDir()}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *realServer) start() {
	s.t.Helper()
	program, err := buildServer()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(program, "--http", s.http, "--grpc", s.grpc, "--data", s.data)
	log, err := os.OpenFile(filepath.Join(s.data, "..", "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if raw, err := os.ReadFile(log.Name()); s.t.Failed() && err == nil {
			s.t.Logf("server's log:\n%s", raw)
		}
	})
	eventually(s.t, "the server is ready", time.Minute, func() bool {
		resp, err := http.Get("http://" + s.http + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// kill ends the server as a power cut would.
func (s *realServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// total is what all stacks of a type add up to in the store.
func (s *realServer) total(t profile.Type) int64 {
	s.t.Helper()
	var answer struct {
		Total int64 `json:"total"`
	}
	s.get("/api/v1/profiles?format=flamegraph&from=now-1h&type="+url.QueryEscape(t.String()), &answer)
	return answer.Total
}

func (s *realServer) get(path string, answer any) {
	s.t.Helper()
	resp, err := http.Get("http://" + s.http + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %s, %v\n%s", path, resp.Status, err, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		s.t.Fatalf("GET %s: %v\n%s", path, err, body)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %v: %s", within, what)
}

// startAgent runs an agent in this process. The function it returns stops it.
func startAgent(t *testing.T, channel, data string) (a *agent, stop func()) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Node, cfg.Version, cfg.HTTP = "whole", "test", ""
	cfg.Window, cfg.OnCPU.Hz = time.Second, 199
	cfg.Uplink.Channel, cfg.Uplink.Data = channel, data
	cfg.Uplink.BackoffMax = 2 * time.Second
	cfg.Uplink.KeepaliveTime, cfg.Uplink.KeepaliveTimeout = 10*time.Second, 5*time.Second
	ctx, cancel := context.WithCancel(t.Context())
	a, err := open(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if f, ok := doctor.Find(a.findings, doctor.OnCPU); ok && !f.Works {
		cancel()
		a.close()
		t.Skip(f.Why)
	}
	done := make(chan error, 1)
	go func() { done <- a.run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("agent: %v", err)
		}
		a.close()
	}
	t.Cleanup(stop)
	return a, stop
}

func (a *agent) taken() int64 { return int64(a.quality.samples[profile.Samples].Load()) }

// drained waits until the server has all that the agent spooled.
func drained(t *testing.T, a *agent) {
	t.Helper()
	eventually(t, "the spool is empty", 2*time.Minute, func() bool { return a.session.Stats().Spool.Batches == 0 })
}

// wholeTruth stops the agent and holds its books against the server's.
func wholeTruth(t *testing.T, s *realServer, a *agent, stop func()) {
	t.Helper()
	drained(t, a)
	stop()
	lost := int64(0)
	for _, l := range a.losses.Total() {
		switch l.Place {
		case "queue", "ring", "follow", "decode", "exited", "exec", "readings":
			// Never counted as taken, or kept without a name.
		default:
			lost += int64(l.Count)
		}
	}
	taken, stored := a.taken(), s.total(profile.Samples)
	if taken == 0 {
		t.Fatal("the agent took no sample")
	}
	if stored != taken-lost {
		t.Errorf("the server holds %d samples; the agent took %d and says that it lost %d", stored, taken, lost)
	}
}

func TestNothingIsLostWhileTheServerIsKilledAgainAndAgain(t *testing.T) {
	startC(t, busyC)
	s := newServer(t)
	a, stop := startAgent(t, s.grpc, t.TempDir())
	for range 3 {
		time.Sleep(3 * time.Second)
		s.kill()
		time.Sleep(time.Second)
		s.start()
	}
	time.Sleep(2 * time.Second)
	wholeTruth(t, s, a, stop)
}

func TestNothingIsLostWhileTheNetworkIsCutForAMinute(t *testing.T) {
	startC(t, busyC)
	s := newServer(t)
	proxy := uplinktest.NewProxy(t, s.grpc)
	a, stop := startAgent(t, proxy.Address, t.TempDir())
	eventually(t, "a first batch is acknowledged", time.Minute, func() bool { return a.session.Stats().BatchesAcked > 0 })
	proxy.Mute(true)
	time.Sleep(time.Minute)
	proxy.Mute(false)
	wholeTruth(t, s, a, stop)
}
