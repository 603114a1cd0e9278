// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

func TestHeartbeatsKeepANodeConnected(t *testing.T) {
	cfg := testConfig(t)
	cfg.Registry.Heartbeat = time.Second
	s := start(t, cfg)
	a := connect(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), "n", "i")
	hear[*diagonv1.BackendMessage_Registration](a)
	a.beat(true, func(hb *diagonv1.DaemonHeartbeatRequest) {
		hb.Health = &diagonv1.Health{Status: diagonv1.Health_STATUS_OK, Samples: 5}
		hb.Losses = []*diagonv1.Loss{{Place: "ring", Count: 1}, {Place: "exited", Count: 2}}
		hb.Capabilities = []*diagonv1.Capability{{Name: "oncpu", Available: true}, {Name: "gpu", Reason: "no device"}}
	})
	a.beat(false, func(hb *diagonv1.DaemonHeartbeatRequest) {
		hb.Losses = []*diagonv1.Loss{{Place: "ring", Count: 9}}
		hb.Capabilities = []*diagonv1.Capability{{Name: "gpu", Available: true}}
	})
	waitFor(t, "the second report is merged", func() bool {
		n := nodeOf(t, s, "n")
		return len(n.Losses) == 2 && n.Losses[1].Count == 9 && len(n.Capabilities) == 2 && n.Capabilities[0].Available && n.Capabilities[1].Available
	})
	if n := nodeOf(t, s, "n"); n.Health.Status != "ok" || n.Health.Samples != 5 || !n.Connected {
		t.Errorf("node %+v", n)
	}

	// A report went missing: the server wants to hear everything.
	a.beats++
	a.beat(false, nil)
	hear[*diagonv1.BackendMessage_FullState](a)

	err := a.ends() // nothing is said for three intervals
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no heartbeat") {
		t.Errorf("stream ended with %v", err)
	}
	waitFor(t, "the node counts as disconnected", func() bool { return !nodeOf(t, s, "n").Connected })
}

func TestTheNewestRegistrationWins(t *testing.T) {
	s := start(t, testConfig(t))
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	old := connect(t, c, "n", "first")
	hear[*diagonv1.BackendMessage_Registration](old)
	fresh := connect(t, c, "n", "second")
	hear[*diagonv1.BackendMessage_Registration](fresh)
	if err := old.ends(); !strings.Contains(err.Error(), "instance second") {
		t.Errorf("the old stream ended with %v", err)
	}
	if n := nodeOf(t, s, "n"); !n.Connected || n.Health.Status == "degraded" {
		t.Errorf("after a restart of the agent: %+v", n)
	}

	// The first comes back: this was no restart, there are two.
	again := connect(t, c, "n", "first")
	hear[*diagonv1.BackendMessage_Registration](again)
	if n := nodeOf(t, s, "n"); n.Health.Status != "degraded" || !strings.Contains(n.Health.Message, "two agents") {
		t.Errorf("two agents of one name are not shown: %+v", n.Health)
	}
}

func TestAStreamBeginsWithARegistration(t *testing.T) {
	cfg := testConfig(t)
	cfg.Ingest.Register = 200 * time.Millisecond
	s := start(t, cfg)
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	for _, tt := range []struct {
		name string
		say  *diagonv1.DaemonMessage
		code codes.Code
	}{
		{"a heartbeat first", &diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Heartbeat{}}, codes.InvalidArgument},
		{"a name that is none", &diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Registration{
			Registration: &diagonv1.DaemonRegistrationRequest{Node: "a b", BootId: "b", InstanceId: "i"}}}, codes.InvalidArgument},
		{"no boot", &diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Registration{
			Registration: &diagonv1.DaemonRegistrationRequest{Node: "a", InstanceId: "i"}}}, codes.InvalidArgument},
		{"silence", nil, codes.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream, err := c.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.say != nil {
				if err := stream.Send(tt.say); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := stream.Recv(); status.Code(err) != tt.code {
				t.Errorf("err = %v, want %v", err, tt.code)
			}
		})
	}
}

func TestSettingsReachTheAgentOnce(t *testing.T) {
	cfg := testConfig(t)
	cfg.Settings.CPUHz = 49
	s := start(t, cfg)
	a := connect(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), "n", "i")
	if st := hear[*diagonv1.BackendMessage_Settings](a).Settings; st.GetCpuHz() != 49 || st.GetGeneration() != 1 {
		t.Errorf("settings %v", st)
	}
	s.Stop()

	cfg.Settings.CPUHz = 99 // a new decision is a new generation
	s = start(t, cfg)
	a = connect(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), "n", "i")
	if st := hear[*diagonv1.BackendMessage_Settings](a).Settings; st.GetCpuHz() != 99 || st.GetGeneration() != 2 {
		t.Errorf("settings %v", st)
	}
}
