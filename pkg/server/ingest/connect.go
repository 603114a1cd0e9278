// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/registry"
)

const (
	orderQueue   = 256 // orders that wait for one agent to read them
	detachWithin = 5 * time.Second
)

// A control is one Connect stream. One loop only receives, one only sends, and the
// handler between them decides; it alone has the state.
type control struct {
	s       *Server
	ctx     context.Context
	session *registry.Session
	node    string
	out     chan *diagonv1.BackendMessage
	stuck   chan struct{} // holds a token once out was full
	told    uint64        // generation of the settings sent last
}

// Connect serves the control stream.
func (s *Server) Connect(stream grpc.BidiStreamingServer[diagonv1.DaemonMessage, diagonv1.BackendMessage]) error {
	if n := s.connects.Add(1); n > int64(s.cfg.Agents) {
		s.connects.Add(-1)
		return retry(codes.ResourceExhausted, retryFull, "this server holds %d agents, and takes no more (ingest-agents)", s.cfg.Agents)
	}
	defer s.connects.Add(-1)

	in := receive(s, stream, 0)
	reg, err := s.registration(stream.Context(), in)
	if err != nil {
		return err
	}
	c := &control{
		s: s, ctx: stream.Context(), node: reg.GetNode(),
		out: make(chan *diagonv1.BackendMessage, orderQueue), stuck: make(chan struct{}, 1),
	}
	sent := make(chan error, 1)
	stop := make(chan struct{})
	defer close(stop)
	if err := c.attach(reg); err != nil {
		return err
	}
	defer c.detach()
	s.loops.Go(func() { sent <- c.send(stream, stop) })
	return c.decide(in, sent)
}

// registration waits for an agent to introduce itself.
func (s *Server) registration(ctx context.Context, in *received[diagonv1.DaemonMessage]) (*diagonv1.DaemonRegistrationRequest, error) {
	late := time.NewTimer(s.cfg.Register)
	defer late.Stop()
	select {
	case m, ok := <-in.messages:
		if !ok {
			return nil, status.Errorf(codes.Canceled, "the stream ended before a registration: %v", in.err)
		}
		reg := m.GetRegistration()
		if reg == nil {
			return nil, status.Errorf(codes.InvalidArgument, "the first message must be a registration, not %T", m.GetMessage())
		}
		return reg, s.checkRegistration(ctx, reg)
	case <-late.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "no registration within %v", s.cfg.Register)
	case <-s.closing:
		return nil, errClosing
	}
}

func (s *Server) checkRegistration(ctx context.Context, reg *diagonv1.DaemonRegistrationRequest) error {
	if err := validNode(reg.GetNode()); err != nil {
		return status.Errorf(codes.InvalidArgument, "registration: node: %v", err)
	}
	if err := validID(reg.GetBootId()); err != nil {
		return status.Errorf(codes.InvalidArgument, "registration: boot_id: %v", err)
	}
	if err := validID(reg.GetInstanceId()); err != nil {
		return status.Errorf(codes.InvalidArgument, "registration: instance_id: %v", err)
	}
	return s.allowed(ctx, reg.GetNode())
}

// attach enters the node in the registry and queues the answer, the settings and the orders that waited.
func (c *control) attach(reg *diagonv1.DaemonRegistrationRequest) error {
	durable, err := c.s.parts.Store.DurableSequence(c.ctx, reg.GetNode(), reg.GetBootId())
	if err != nil {
		c.s.log.Warn("cannot ask the store how far it is", "node", c.node, "err", err)
		return retry(codes.Unavailable, retrySoon, "the store does not answer")
	}
	c.out <- &diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_Registration{
		Registration: &diagonv1.DaemonRegistrationResponse{
			HeartbeatIntervalMs: uint32(c.s.cfg.Heartbeat.Milliseconds()),
			Server:              c.s.cfg.Server,
			DurableSequence:     durable,
		}}}
	c.session, err = c.s.parts.Registry.Attach(c.ctx, reg, c.deliver)
	if err != nil {
		c.s.log.Warn("cannot register a node", "node", c.node, "err", err)
		return retry(codes.Unavailable, retrySoon, "the registry does not answer")
	}
	c.told = reg.GetSettingsGeneration()
	c.settings()
	for _, m := range c.s.parts.Captures.Returned(c.ctx, c.node, reg.GetInstanceId(), reg.GetCaptures()) {
		if err := c.deliver(m); err != nil {
			break // the stream ends, and the orders wait for the next one
		}
	}
	return nil
}

// detach takes the node off the registry; it must do so after the stream's context is done.
func (c *control) detach() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), detachWithin)
	defer cancel()
	c.session.Detach(ctx)
}

// deliver puts a message into the queue. It never blocks: an agent that does not
// read loses its stream, and comes back to its orders.
func (c *control) deliver(m *diagonv1.BackendMessage) error {
	if c.ctx.Err() != nil {
		return fmt.Errorf("the stream of node %q has ended", c.node)
	}
	select {
	case c.out <- m:
		return nil
	default:
	}
	select {
	case c.stuck <- struct{}{}:
	default:
	}
	return fmt.Errorf("node %q has not read its last %d orders", c.node, orderQueue)
}

// send is the loop that only sends.
func (c *control) send(stream grpc.BidiStreamingServer[diagonv1.DaemonMessage, diagonv1.BackendMessage], stop <-chan struct{}) error {
	for {
		select {
		case m := <-c.out:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-stop:
			return nil
		}
	}
}

// decide takes what the agent says until one side ends the stream, and answers why.
func (c *control) decide(in *received[diagonv1.DaemonMessage], sent <-chan error) error {
	patience := time.Duration(c.s.cfg.Silence) * c.s.cfg.Heartbeat
	silence := time.NewTimer(patience)
	defer silence.Stop()
	for {
		select {
		case m, ok := <-in.messages:
			if !ok {
				c.s.log.Info("node disconnected", "node", c.node, "reason", reason(in.err))
				return ended(in.err)
			}
			if err := c.take(m); err != nil {
				return err
			}
			silence.Reset(patience)
		case err := <-sent:
			return err
		case <-silence.C:
			c.s.log.Warn("node fell silent", "node", c.node, "patience", patience)
			return retry(codes.Unavailable, retrySoon, "no heartbeat for %v", patience)
		case <-c.session.Fenced():
			c.s.log.Info("node's stream is replaced", "node", c.node, "instance", c.session.Instance(), "cause", c.session.Cause())
			return retry(codes.Aborted, retrySoon, "%s", c.session.Cause())
		case <-c.stuck:
			c.s.log.Warn("node does not read its orders", "node", c.node, "queue", orderQueue)
			return retry(codes.ResourceExhausted, retrySoon, "the agent does not read: %d orders wait", orderQueue)
		case <-c.s.closing:
			return errClosing
		}
	}
}

// take does what one message asks for.
func (c *control) take(m *diagonv1.DaemonMessage) error {
	switch m := m.GetMessage().(type) {
	case *diagonv1.DaemonMessage_Heartbeat:
		c.s.metrics.heartbeats.Inc()
		if c.session.Heartbeat(c.ctx, m.Heartbeat) {
			_ = c.deliver(&diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_FullState{FullState: &diagonv1.FullStateRequest{}}})
		}
		c.settings()
	case *diagonv1.DaemonMessage_CaptureUpdate:
		err := c.s.parts.Captures.Update(c.ctx, c.node, c.session.Instance(), m.CaptureUpdate)
		if err != nil {
			c.s.log.Warn("update of a capture is not taken", "node", c.node, "capture", m.CaptureUpdate.GetId(), "err", err)
		}
	case *diagonv1.DaemonMessage_SettingsStatus:
		st := m.SettingsStatus
		c.s.log.Info("node answers its settings", "node", c.node, "generation", st.GetGeneration(), "applied", st.GetApplied(), "message", st.GetMessage())
	case *diagonv1.DaemonMessage_Registration:
		return status.Error(codes.InvalidArgument, "a second registration on one stream")
	default: // of a newer agent
		c.s.metrics.unknown.Inc()
	}
	return nil
}

// settings sends the fleet's settings when the agent does not have them.
func (c *control) settings() {
	st := c.s.parts.Registry.Settings()
	if st == nil || st.GetGeneration() == c.told {
		return
	}
	if c.deliver(&diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_Settings{Settings: st}}) == nil {
		c.told = st.GetGeneration()
	}
}

// reason is how a stream's end is written in the log.
func reason(err error) string {
	if ended(err) == nil {
		return "the agent closed the stream"
	}
	return strings.TrimSpace(status.Convert(err).Message())
}
