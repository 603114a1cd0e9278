// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/uplink/uplinktest"
)

func capture(id string) *diagonv1.BackendMessage {
	return &diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_Capture{Capture: &diagonv1.CaptureRequest{Id: id, Kind: "cpu"}}}
}

func settings(generation uint64) *diagonv1.BackendMessage {
	return &diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_Settings{Settings: &diagonv1.Settings{Generation: generation}}}
}

// taken answers the ids of the captures that were handed over.
func (n *node) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ids []string
	for _, c := range n.captures {
		ids = append(ids, c.GetId())
	}
	return ids
}

func connected(t *testing.T, a *agent) {
	t.Helper()
	eventually(t, "the agent is connected", func() bool { return a.Stats().Connected })
}

func TestTheThreeLogLinesAreExact(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	a := start(t, quick(t, server.Address))
	eventually(t, "a heartbeat arrives", func() bool { return len(state.Heartbeats()) > 0 })
	log, at := a.log.String(), 0
	for _, line := range []string{
		`msg="Stream established."`,
		`msg="Received successful DaemonRegistrationResponse from backend"`,
		`msg="Sending DaemonHeartbeatRequest"`,
	} {
		i := strings.Index(log[at:], line)
		if i < 0 {
			t.Fatalf("the log has no %s behind the line before:\n%s", line, log)
		}
		at += i
	}
}

func TestRegistrationSaysWhoAndWhatTheNodeIs(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	n := &node{capabilities: []*diagonv1.Capability{{Name: "gpu", Reason: "no such file"}}}
	a := startBoot(t, quick(t, server.Address), bootA, n)
	connected(t, a)
	r := state.Registrations()[0]
	if r.GetNode() != "n1" || r.GetBootId() != bootA || r.GetAgentVersion() != "test" || r.GetInstanceId() == "" {
		t.Errorf("registration = %v", r)
	}
	if len(r.GetCapabilities()) != 1 || r.GetCapabilities()[0].GetReason() != "no such file" {
		t.Errorf("capabilities = %v", r.GetCapabilities())
	}
	if st := a.Stats(); st.Server != "uplinktest" || st.Since.IsZero() || st.LastError != nil {
		t.Errorf("stats = %+v", st)
	}
}

func TestHeartbeatsTellOnlyWhatChanged(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	n := &node{
		health:       &diagonv1.Health{Status: diagonv1.Health_STATUS_OK},
		losses:       []*diagonv1.Loss{{Place: "ring", Count: 1}, {Place: "window", Count: 2}},
		capabilities: []*diagonv1.Capability{{Name: "oncpu", Available: true}},
		devices:      []*diagonv1.Device{{Kind: "gpu", Id: "0"}},
	}
	startBoot(t, quick(t, server.Address), bootA, n)

	eventually(t, "a heartbeat without news", func() bool { return len(state.Heartbeats()) >= 2 })
	first, second := state.Heartbeats()[0], state.Heartbeats()[1]
	if !first.GetFull() || first.GetSequence() != 1 || len(first.GetLosses()) != 2 || len(first.GetCapabilities()) != 1 || len(first.GetDevices()) != 1 || first.GetHealth() == nil {
		t.Errorf("the first heartbeat is not everything: %v", first)
	}
	if second.GetFull() || second.GetSequence() != 2 || second.GetHealth() != nil || len(second.GetLosses())+len(second.GetCapabilities())+len(second.GetDevices()) > 0 {
		t.Errorf("the second heartbeat repeats what did not change: %v", second)
	}

	n.change(func() { n.losses = []*diagonv1.Loss{{Place: "ring", Count: 5}, {Place: "window", Count: 2}} })
	eventually(t, "a delta of one loss", func() bool {
		for _, h := range state.Heartbeats()[1:] {
			if l := h.GetLosses(); len(l) == 1 && l[0].GetPlace() == "ring" && l[0].GetCount() == 5 && !h.GetFull() && h.GetHealth() == nil {
				return true
			}
		}
		return false
	})

	n.change(func() { n.devices = nil })
	eventually(t, "a full heartbeat, since a device is gone", func() bool {
		for _, h := range state.Heartbeats()[1:] {
			if h.GetFull() && len(h.GetDevices()) == 0 && len(h.GetLosses()) == 2 {
				return true
			}
		}
		return false
	})
}

func TestAGapMakesTheNextHeartbeatFull(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	n := &node{losses: []*diagonv1.Loss{{Place: "ring", Count: 1}}}
	startBoot(t, quick(t, server.Address), bootA, n)
	eventually(t, "two heartbeats", func() bool { return len(state.Heartbeats()) >= 2 })
	for _, h := range state.Heartbeats()[1:] {
		if h.GetFull() {
			t.Fatalf("heartbeat %d is full before there was a gap", h.GetSequence())
		}
	}
	state.LoseHeartbeats(1)
	eventually(t, "a full heartbeat", func() bool {
		for _, h := range state.Heartbeats()[2:] {
			if h.GetFull() {
				return h.GetSequence() > 2 && len(h.GetLosses()) == 1
			}
		}
		return false
	})
}

func TestTheHeartbeatIntervalIsTheServersWithinBounds(t *testing.T) {
	cfg := DefaultConfig()
	c := &control{s: &Session{cfg: cfg}}
	for _, tt := range []struct {
		name  string
		asked time.Duration
		want  time.Duration
	}{
		{"what the server sets", 30 * time.Second, 30 * time.Second},
		{"a server that does not care", 0, 15 * time.Second},
		{"too often", time.Millisecond, time.Second},
		{"too seldom", time.Hour, 5 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := c.heartbeatInterval(&diagonv1.DaemonRegistrationResponse{HeartbeatIntervalMs: uint32(tt.asked.Milliseconds())})
			if got != tt.want {
				t.Errorf("interval = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestACaptureIsHandedOverOnceHoweverOftenItIsOrdered(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	cfg := quick(t, server.Address)
	a := start(t, cfg)
	connected(t, a)
	server.Order(capture("c1"))
	server.Order(capture("c1"))
	server.Order(capture("../etc/passwd"))
	server.Order(capture("c2"))
	eventually(t, "the second capture arrives", func() bool { return len(a.taken()) >= 2 })
	if got := fmt.Sprint(a.taken()); got != "[c1 c2]" {
		t.Errorf("captures handed over: %s, want [c1 c2]", got)
	}
	if u := state.Updates(); len(u) > 0 {
		t.Errorf("the server was told %v of captures that still wait to run", u)
	}
	a.stop()

	b := start(t, cfg) // a new life of the agent remembers
	connected(t, b)
	server.Order(capture("c1"))
	server.Order(capture("c3"))
	eventually(t, "the new capture arrives", func() bool { return len(b.taken()) >= 1 })
	if got := fmt.Sprint(b.taken()); got != "[c3]" {
		t.Errorf("captures handed over after a restart: %s, want [c3]", got)
	}
	eventually(t, "the server hears what became of the first", func() bool {
		for _, u := range state.Updates() {
			if u.GetId() == "c1" && u.GetState() == diagonv1.CaptureState_CAPTURE_STATE_FAILED && strings.Contains(u.GetMessage(), "restarted") {
				return true
			}
		}
		return false
	})
}

func TestTheStateOfACaptureIsToldAgainAfterAReconnect(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	a := start(t, quick(t, proxy.Address))
	connected(t, a)
	a.ReportCapture(&diagonv1.CaptureUpdate{Id: "c1", State: diagonv1.CaptureState_CAPTURE_STATE_RUNNING})
	eventually(t, "the update arrives", func() bool { return len(state.Updates()) == 1 })

	proxy.Refuse(true)
	proxy.Cut()
	a.ReportCapture(&diagonv1.CaptureUpdate{Id: "c1", State: diagonv1.CaptureState_CAPTURE_STATE_RUNNING, Message: "half"})
	a.ReportCapture(&diagonv1.CaptureUpdate{Id: "c1", State: diagonv1.CaptureState_CAPTURE_STATE_SUCCEEDED})
	proxy.Refuse(false)
	eventually(t, "the newest state arrives", func() bool {
		u := state.Updates()
		return u[len(u)-1].GetState() == diagonv1.CaptureState_CAPTURE_STATE_SUCCEEDED
	})
	for _, u := range state.Updates() {
		if u.GetMessage() == "half" {
			t.Error("a state that was overtaken was told")
		}
	}
	r := state.Registrations()
	if c := r[len(r)-1].GetCaptures(); len(c) != 1 || c[0].GetState() != diagonv1.CaptureState_CAPTURE_STATE_SUCCEEDED {
		t.Errorf("the registration says of captures: %v", c)
	}
}

func TestAFinalStateIsForgottenOnceTheServerMustHaveIt(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	a := start(t, quick(t, proxy.Address))
	a.outbox.settle = 50 * time.Millisecond
	a.ReportCapture(&diagonv1.CaptureUpdate{Id: "over", State: diagonv1.CaptureState_CAPTURE_STATE_EMPTY})
	a.ReportCapture(&diagonv1.CaptureUpdate{Id: "runs", State: diagonv1.CaptureState_CAPTURE_STATE_RUNNING})
	eventually(t, "both updates arrive", func() bool { return len(state.Updates()) >= 2 })
	time.Sleep(100 * time.Millisecond)
	before := len(state.Registrations())
	proxy.Cut()
	eventually(t, "the agent registers again", func() bool { return len(state.Registrations()) > before })
	c := state.Registrations()[before].GetCaptures()
	if len(c) != 1 || c[0].GetId() != "runs" {
		t.Errorf("the registration says of captures: %v, want only the one that runs", c)
	}
	connected(t, a)
	a.takeCapture(&diagonv1.CaptureRequest{Id: "over"}) // never ordered in this test: handed over
	a.takeCapture(&diagonv1.CaptureRequest{Id: "over"}) // ordered again: the state is told again
	eventually(t, "the final state is told to a server that asks again", func() bool {
		n := 0
		for _, u := range state.Updates() {
			if u.GetId() == "over" && u.GetState() == diagonv1.CaptureState_CAPTURE_STATE_EMPTY {
				n++
			}
		}
		return n == 2
	})
}

func TestOnlyTheNewestSettingsCount(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	a := start(t, quick(t, server.Address))
	connected(t, a)
	for _, generation := range []uint64{3, 2, 3, 5} {
		server.Order(settings(generation))
	}
	server.Order(&diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_CancelCapture{CancelCapture: &diagonv1.CancelCapture{Id: "c1", Reason: "enough"}}})
	eventually(t, "the cancel behind the settings arrives", func() bool {
		a.node.mu.Lock()
		defer a.node.mu.Unlock()
		return len(a.cancels) == 1 && a.cancels[0] == "c1: enough"
	})
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	if len(a.node.settings) != 2 || a.node.settings[0].GetGeneration() != 3 || a.node.settings[1].GetGeneration() != 5 {
		t.Errorf("settings handed over: %v, want generations 3 and 5", a.node.settings)
	}
	a.ReportSettings(&diagonv1.SettingsStatus{Generation: 5, Message: "rate clamped to 99"})
	eventually(t, "the answer arrives", func() bool { return len(state.Settings()) == 1 && state.Settings()[0].GetGeneration() == 5 })
}

func TestAServerThatAsksToComeBackLaterIsLeftAloneSoLong(t *testing.T) {
	busy, err := status.New(codes.Unavailable, "overloaded").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(300 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		after *diagonv1.RetryAfter
		err   error
	}{
		{"by a message", &diagonv1.RetryAfter{DelayMs: 300, Reason: "draining"}, nil},
		{"by RetryInfo in the status", nil, busy.Err()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := make(chan time.Time, 1)
			state := uplinktest.NewState()
			server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{Register: func(*diagonv1.DaemonRegistrationRequest) (*diagonv1.RetryAfter, error) {
				select {
				case asked <- time.Now():
					return tt.after, tt.err
				default:
					return nil, nil
				}
			}})
			a := start(t, quick(t, server.Address))
			connected(t, a)
			if waited := time.Since(<-asked); waited < 300*time.Millisecond {
				t.Errorf("came back after %v, and was asked to wait 300 ms", waited)
			}
		})
	}
	t.Run("in the middle of a connection", func(t *testing.T) {
		state := uplinktest.NewState()
		server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
		a := start(t, quick(t, server.Address))
		connected(t, a)
		asked := time.Now()
		server.Order(&diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_RetryAfter{RetryAfter: &diagonv1.RetryAfter{DelayMs: 300}}})
		eventually(t, "the agent is back", func() bool { return len(state.Registrations()) == 2 })
		if waited := time.Since(asked); waited < 300*time.Millisecond {
			t.Errorf("came back after %v, and was asked to wait 300 ms", waited)
		}
	})
}

func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{Mute: true})
	cfg := quick(t, server.Address)
	cfg.ConnectTimeout = 100 * time.Millisecond
	a := start(t, cfg)
	eventually(t, "the registration times out", func() bool {
		err := a.Stats().LastError
		return err != nil && strings.Contains(err.Error(), "did not answer in time")
	})
	server.Behave(func(b *uplinktest.Behaviour) { b.Mute = false })
	connected(t, a)
}
