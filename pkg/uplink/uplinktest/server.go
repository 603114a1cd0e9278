// SPDX-License-Identifier: Apache-2.0

// Package uplinktest is the other half of the wire for tests: a small honest server of
// api/diagon/v1 on a real TCP port, whose State outlives it as a disk would, and a Proxy that
// cuts and mutes connections.
package uplinktest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// Behaviour is how a Server treats its agents. The functions may be nil.
type Behaviour struct {
	Heartbeat time.Duration // interval it asks for; 0 asks for 20 ms
	Credit    uint64        // 0 grants 1 MiB
	HoldAcks  bool          // receives and stores batches, and never says so
	Mute      bool          // takes streams, and never says a word

	Register func(*diagonv1.DaemonRegistrationRequest) (*diagonv1.RetryAfter, error)
	Batch    func(*diagonv1.Batch) error           // ends the stream
	Reject   func(*diagonv1.Batch) (reason string) // "" accepts
	Begin    func(*diagonv1.ArtifactBegin) error
}

// A Server serves the protocol from Start until Kill.
type Server struct {
	diagonv1.UnimplementedDiagnosticsServer
	Address string

	state *State
	grpc  *grpc.Server
	done  chan struct{}

	mu      sync.Mutex
	how     Behaviour
	streams map[chan *diagonv1.BackendMessage]bool
}

// Start serves at address ("127.0.0.1:0" for a free port) with what state holds,
// until Kill or the test's end.
func Start(t testing.TB, address string, state *State, how Behaviour, options ...grpc.ServerOption) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("uplinktest: %v", err)
	}
	options = append(options, grpc.WaitForHandlers(true), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	s := &Server{
		Address: listener.Addr().String(),
		state:   state,
		grpc:    grpc.NewServer(options...),
		done:    make(chan struct{}),
		how:     how,
		streams: make(map[chan *diagonv1.BackendMessage]bool),
	}
	diagonv1.RegisterDiagnosticsServer(s.grpc, s)
	go func() {
		defer close(s.done)
		_ = s.grpc.Serve(listener)
	}()
	t.Cleanup(s.Kill)
	return s
}

// Kill drops all connections at once. What State holds stays.
func (s *Server) Kill() {
	s.grpc.Stop()
	<-s.done
}

// Behave changes how the server treats what comes next.
func (s *Server) Behave(change func(*Behaviour)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.how)
}

func (s *Server) behaviour() Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.how
}

// Order sends a message down every Connect stream.
func (s *Server) Order(m *diagonv1.BackendMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.streams {
		ch <- m
	}
}

// Connect receives in one goroutine and sends in another.
func (s *Server) Connect(stream grpc.BidiStreamingServer[diagonv1.DaemonMessage, diagonv1.BackendMessage]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r := first.GetRegistration()
	if r == nil {
		return status.Error(codes.InvalidArgument, "the first message is not a registration")
	}
	how := s.behaviour()
	if how.Mute {
		<-stream.Context().Done()
		return nil
	}
	if how.Register != nil {
		after, err := how.Register(r)
		if err != nil {
			return err
		}
		if after != nil {
			return stream.Send(&diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_RetryAfter{RetryAfter: after}})
		}
	}
	durable := s.state.register(r)
	if how.Heartbeat == 0 {
		how.Heartbeat = 20 * time.Millisecond
	}
	err = stream.Send(&diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_Registration{Registration: &diagonv1.DaemonRegistrationResponse{
		HeartbeatIntervalMs: uint32(how.Heartbeat.Milliseconds()), Server: "uplinktest", DurableSequence: durable,
	}}})
	if err != nil {
		return err
	}

	orders := make(chan *diagonv1.BackendMessage, 64)
	s.mu.Lock()
	s.streams[orders] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.streams, orders)
		s.mu.Unlock()
	}()
	received := make(chan error, 1)
	go func() { received <- s.receive(stream, orders) }()
	for {
		select {
		case m := <-orders:
			if err := stream.Send(m); err != nil {
				return err
			}
		case err := <-received:
			return err
		}
	}
}

func (s *Server) receive(stream grpc.BidiStreamingServer[diagonv1.DaemonMessage, diagonv1.BackendMessage], orders chan<- *diagonv1.BackendMessage) error {
	var beats uint64
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if h := m.GetHeartbeat(); h != nil {
			if h.GetSequence() != beats+1 && !h.GetFull() {
				orders <- &diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_FullState{FullState: &diagonv1.FullStateRequest{}}}
			}
			beats = h.GetSequence()
			if s.state.loseHeartbeat() {
				beats-- // as if it had never come
			}
		}
		s.state.note(m)
	}
}

// PushProfiles stores each batch and then says so.
func (s *Server) PushProfiles(stream grpc.BidiStreamingServer[diagonv1.PushProfilesRequest, diagonv1.PushProfilesResponse]) error {
	how := s.behaviour()
	if how.Mute {
		<-stream.Context().Done()
		return nil
	}
	credit := how.Credit
	if credit == 0 {
		credit = 1 << 20
	}
	if err := stream.Send(&diagonv1.PushProfilesResponse{CreditBytes: credit}); err != nil {
		return err
	}
	var first *diagonv1.Batch
	last := uint64(0)
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		b := m.GetBatch()
		if first == nil {
			first = b
		}
		if b.GetNode() != first.GetNode() || b.GetBootId() != first.GetBootId() || b.GetSequence() <= last {
			return status.Error(codes.InvalidArgument, "batches of one stream are of one node and boot, and rise")
		}
		last = b.GetSequence()
		how = s.behaviour()
		if how.Batch != nil {
			if err := how.Batch(b); err != nil {
				return err
			}
		}
		if crc32.Checksum(b.GetProfileZstd(), castagnoli) != b.GetCrc32C() {
			return status.Errorf(codes.InvalidArgument, "batch %d: checksum differs", b.GetSequence())
		}
		answer := &diagonv1.PushProfilesResponse{DurableSequence: b.GetSequence(), CreditBytes: credit}
		reason := ""
		if how.Reject != nil {
			reason = how.Reject(b)
		}
		if reason != "" {
			answer.Rejected = []*diagonv1.RejectedBatch{{Sequence: b.GetSequence(), Reason: reason}}
		} else {
			s.state.store(b)
		}
		if how.HoldAcks {
			s.state.owe(uint64(proto.Size(b)))
			continue
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// UploadArtifact keeps what it has received of an artifact, also when it is cut.
func (s *Server) UploadArtifact(stream grpc.BidiStreamingServer[diagonv1.UploadArtifactRequest, diagonv1.UploadArtifactResponse]) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	begin := m.GetBegin()
	if begin == nil {
		return status.Error(codes.InvalidArgument, "the first message is not a begin")
	}
	how := s.behaviour()
	if how.Mute {
		<-stream.Context().Done()
		return nil
	}
	if how.Begin != nil {
		if err := how.Begin(begin); err != nil {
			return err
		}
	}
	a := s.state.artifact(begin)
	if err := stream.Send(&diagonv1.UploadArtifactResponse{CommittedOffset: a.offset()}); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if chunk := m.GetChunk(); chunk != nil {
			if err := a.append(chunk); err != nil {
				return err
			}
			continue
		}
		if !a.commit() {
			return status.Error(codes.DataLoss, "size or hash differ; begin again")
		}
		return stream.Send(&diagonv1.UploadArtifactResponse{CommittedOffset: begin.GetSize(), Complete: true})
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An Artifact is what the server holds of one.
type Artifact struct {
	Begin    *diagonv1.ArtifactBegin
	Begins   int // streams that began it
	Chunks   int
	Data     []byte
	Complete bool
}

type artifact struct {
	mu sync.Mutex
	Artifact
}

func (a *artifact) offset() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return uint64(len(a.Data))
}

func (a *artifact) append(c *diagonv1.ArtifactChunk) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if crc32.Checksum(c.GetData(), castagnoli) != c.GetCrc32C() {
		return status.Error(codes.DataLoss, "chunk: checksum differs")
	}
	if c.GetOffset() != uint64(len(a.Data)) {
		return status.Error(codes.InvalidArgument, fmt.Sprintf("chunk at %d, want %d", c.GetOffset(), len(a.Data)))
	}
	a.Data = append(a.Data, c.GetData()...)
	a.Chunks++
	return nil
}

func (a *artifact) commit() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := sha256.Sum256(a.Data)
	a.Complete = uint64(len(a.Data)) == a.Begin.GetSize() && bytes.Equal(sum[:], a.Begin.GetSha256())
	if !a.Complete {
		a.Data = nil
	}
	return a.Complete
}
