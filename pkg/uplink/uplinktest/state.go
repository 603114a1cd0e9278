// SPDX-License-Identifier: Apache-2.0

package uplinktest

import (
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// A Key is a batch's identity.
type Key struct {
	Node, BootID string
	Sequence     uint64
}

// State is what a Server has been told. It outlives the Server.
type State struct {
	mu            sync.Mutex
	batches       map[Key]*diagonv1.Batch
	order         []Key
	resent        int
	owed          uint64
	drop          int
	registrations []*diagonv1.DaemonRegistrationRequest
	heartbeats    []*diagonv1.DaemonHeartbeatRequest
	updates       []*diagonv1.CaptureUpdate
	settings      []*diagonv1.SettingsStatus
	artifacts     map[string]*artifact
}

// NewState is the state of a server that has heard nothing.
func NewState() *State {
	return &State{batches: make(map[Key]*diagonv1.Batch), artifacts: make(map[string]*artifact)}
}

// LoseHeartbeats makes the server behave as if the next n heartbeats had not come.
func (s *State) LoseHeartbeats(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop = n
}

func (s *State) loseHeartbeat() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drop == 0 {
		return false
	}
	s.drop--
	return true
}

// Batches answers the batches stored, in the order in which they came first.
func (s *State) Batches() []*diagonv1.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*diagonv1.Batch
	for _, k := range s.order {
		all = append(all, s.batches[k])
	}
	return all
}

// Resent is how many batches came that were stored already.
func (s *State) Resent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resent
}

// Owed is how many bytes of batches came that HoldAcks left unanswered.
func (s *State) Owed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owed
}

// Registrations answers all that were accepted.
func (s *State) Registrations() []*diagonv1.DaemonRegistrationRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.registrations)
}

// Heartbeats answers all that came, those to be lost included.
func (s *State) Heartbeats() []*diagonv1.DaemonHeartbeatRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heartbeats)
}

// Updates answers what agents said of captures.
func (s *State) Updates() []*diagonv1.CaptureUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.updates)
}

// Settings answers what agents said of settings.
func (s *State) Settings() []*diagonv1.SettingsStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.settings)
}

// Artifact answers a copy of what is held of an artifact.
func (s *State) Artifact(captureID, name string) (Artifact, bool) {
	s.mu.Lock()
	held := s.artifacts[captureID+"/"+name]
	s.mu.Unlock()
	if held == nil {
		return Artifact{}, false
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	a := held.Artifact
	a.Data = slices.Clone(a.Data)
	return a, true
}

func (s *State) register(r *diagonv1.DaemonRegistrationRequest) (durable uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registrations = append(s.registrations, r)
	for k := range s.batches {
		if k.Node == r.GetNode() && k.BootID == r.GetBootId() {
			durable = max(durable, k.Sequence)
		}
	}
	return durable
}

func (s *State) note(m *diagonv1.DaemonMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.GetMessage().(type) {
	case *diagonv1.DaemonMessage_Heartbeat:
		s.heartbeats = append(s.heartbeats, m.Heartbeat)
	case *diagonv1.DaemonMessage_CaptureUpdate:
		s.updates = append(s.updates, m.CaptureUpdate)
	case *diagonv1.DaemonMessage_SettingsStatus:
		s.settings = append(s.settings, m.SettingsStatus)
	}
}

func (s *State) store(b *diagonv1.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := Key{b.GetNode(), b.GetBootId(), b.GetSequence()}
	if before, ok := s.batches[k]; ok {
		if !proto.Equal(before, b) {
			panic(fmt.Sprintf("uplinktest: two different batches are called %+v", k))
		}
		s.resent++
		return
	}
	s.batches[k] = b
	s.order = append(s.order, k)
}

func (s *State) owe(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed += n
}

func (s *State) artifact(b *diagonv1.ArtifactBegin) *artifact {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := b.GetCaptureId() + "/" + b.GetName()
	a := s.artifacts[key]
	if a == nil {
		a = &artifact{Artifact: Artifact{Begin: b}}
		s.artifacts[key] = a
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Begins++
	return a
}
