// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// The three log lines that people and scripts wait for, exactly as the system that
// diagon re-implements writes them. They are part of the interface.
const (
	logEstablished = "Stream established."
	logRegistered  = "Received successful DaemonRegistrationResponse from backend"
	logHeartbeat   = "Sending DaemonHeartbeatRequest"
)

// errSilent means that the server did not answer in time though the connection held.
var errSilent = errors.New("the backend did not answer in time")

// A control is one life of the Connect stream. After the registration one goroutine
// only receives and another only sends.
type control struct {
	s      *Session
	stream grpc.BidiStreamingClient[diagonv1.DaemonMessage, diagonv1.BackendMessage]
	cancel context.CancelCauseFunc // ends the stream

	interval   chan time.Duration // heartbeat interval set by the server; holds the newest
	wantFull   chan struct{}      // holds a token when the next heartbeat must be full
	generation uint64             // of the newest settings received on this stream; the receiver's own
	settings   bool               // there were any
}

// connect makes one connection, serves it, and answers why it ended.
func (s *Session) connect(ctx context.Context) error {
	conn, tap, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	group, ctx := errgroup.WithContext(ctx)
	client := diagonv1.NewDiagnosticsClient(conn)

	c := &control{s: s, cancel: cancel, interval: make(chan time.Duration, 1), wantFull: make(chan struct{}, 1)}
	defer s.outbox.end()
	first, err := c.register(ctx, client)
	if err != nil {
		return tap.explain(err, s.channel.TLS, c.stream != nil)
	}
	// A folder that was wiped during this boot may give out numbers that are taken.
	s.spool.SkipTo(first.GetDurableSequence())
	s.counts.connected(first.GetServer())
	defer s.counts.disconnected()
	s.up.set(ctx, client)
	defer s.up.clear()

	group.Go(func() error { return c.receive(ctx) })
	group.Go(func() error { return c.send(ctx, first) })
	group.Go(func() error { return s.push(ctx, client) })
	return cause(ctx, group.Wait())
}

// register opens the stream and introduces the agent.
func (c *control) register(ctx context.Context, client diagonv1.DiagnosticsClient) (*diagonv1.DaemonRegistrationResponse, error) {
	defer within(c.s.cfg.ConnectTimeout, c.cancel)()
	stream, err := client.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", cause(ctx, err))
	}
	c.stream = stream
	c.s.log.Info(logEstablished, "address", c.s.channel.Address())

	r := proto.CloneOf(c.s.reporter.Registration())
	r.Node, r.BootId, r.InstanceId = c.s.id.Node, c.s.id.BootID, c.s.instance
	r.Captures = c.s.outbox.begin()
	err = stream.Send(&diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Registration{Registration: r}})
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF: the reason comes by Recv
		return nil, fmt.Errorf("register: %w", cause(ctx, err))
	}
	m, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("register: the backend closed the stream")
	}
	if err != nil {
		return nil, fmt.Errorf("register: %w", cause(ctx, err))
	}
	switch m := m.GetMessage().(type) {
	case *diagonv1.BackendMessage_Registration:
		c.s.log.Info(logRegistered, "server", m.Registration.GetServer())
		return m.Registration, nil
	case *diagonv1.BackendMessage_RetryAfter:
		return nil, retryAfter(m.RetryAfter)
	default:
		return nil, fmt.Errorf("register: the backend began with %T", m)
	}
}

// receive hands orders over until the stream ends.
func (c *control) receive(ctx context.Context) error {
	for {
		m, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the backend closed the stream")
		}
		if err != nil {
			return fmt.Errorf("receive: %w", cause(ctx, err))
		}
		switch m := m.GetMessage().(type) {
		case *diagonv1.BackendMessage_Registration:
			newest(c.interval, c.heartbeatInterval(m.Registration))
		case *diagonv1.BackendMessage_Settings:
			c.takeSettings(m.Settings)
		case *diagonv1.BackendMessage_Capture:
			c.s.takeCapture(m.Capture)
		case *diagonv1.BackendMessage_CancelCapture:
			c.s.orders.Cancel(m.CancelCapture.GetId(), m.CancelCapture.GetReason())
		case *diagonv1.BackendMessage_FullState:
			newest(c.wantFull, struct{}{})
		case *diagonv1.BackendMessage_RetryAfter:
			return retryAfter(m.RetryAfter)
		default:
			c.s.log.Warn("Ignoring an order of a kind that this agent does not know.")
		}
	}
}

// takeSettings keeps to the newest generation.
func (c *control) takeSettings(st *diagonv1.Settings) {
	if c.settings && st.GetGeneration() <= c.generation {
		return
	}
	c.settings, c.generation = true, st.GetGeneration()
	c.s.orders.Settings(st)
}

// takeCapture hands an order over the first time it comes. When it comes again the
// server has missed what became of it.
func (s *Session) takeCapture(r *diagonv1.CaptureRequest) {
	id := r.GetId()
	if !validOrderID(id) {
		s.log.Warn("Ignoring a capture whose id is not valid.", "id", id)
		return
	}
	before, err := s.seen.add(id)
	if err != nil {
		s.log.Warn("Cannot write down a capture's id: delivered again after a restart it would run twice.", "capture", id, "error", err)
	}
	if before == never {
		s.orders.Capture(r)
		return
	}
	s.log.Info("A capture was ordered again; it is not run again.", "capture", id)
	told := s.outbox.again(id)
	if before == earlierLife && !told {
		s.outbox.capture(&diagonv1.CaptureUpdate{
			Id:      id,
			State:   diagonv1.CaptureState_CAPTURE_STATE_FAILED,
			Message: "the agent was restarted while it had this capture, and does not run a capture twice",
		})
	}
}

// send is the only one to write to the stream once registered: heartbeats at the
// interval the server sets, and what waits in the outbox at once.
func (c *control) send(ctx context.Context, first *diagonv1.DaemonRegistrationResponse) error {
	interval := c.heartbeatInterval(first)
	next := time.NewTimer(0) // the first heartbeat follows the registration
	defer next.Stop()
	var b beat
	full := true
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case interval = <-c.interval:
			next.Reset(interval)
		case <-c.wantFull:
			full = true
		case <-next.C:
			c.s.log.Info(logHeartbeat, "sequence", b.sequence+1, "full", full)
			h := b.next(c.s.state(), full)
			if err := c.write(ctx, &diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Heartbeat{Heartbeat: h}}); err != nil {
				return err
			}
			full = false
			next.Reset(interval)
		case <-c.s.outbox.ready:
			for _, m := range c.s.outbox.take() {
				if err := c.write(ctx, m); err != nil {
					return err
				}
			}
		}
	}
}

func (c *control) write(ctx context.Context, m *diagonv1.DaemonMessage) error {
	defer within(c.s.cfg.AnswerTimeout, c.cancel)()
	err := c.stream.Send(m)
	if errors.Is(err, io.EOF) {
		<-ctx.Done() // the receiver has the reason, and ends the group with it
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("send: %w", cause(ctx, err))
	}
	return nil
}

func (c *control) heartbeatInterval(r *diagonv1.DaemonRegistrationResponse) time.Duration {
	asked := time.Duration(r.GetHeartbeatIntervalMs()) * time.Millisecond
	if asked == 0 {
		asked = defaultHeartbeat
	}
	return min(max(asked, c.s.cfg.HeartbeatMin), c.s.cfg.HeartbeatMax)
}

// defaultHeartbeat is used when the server does not care.
const defaultHeartbeat = 15 * time.Second

func retryAfter(r *diagonv1.RetryAfter) error {
	return &retryAfterError{time.Duration(r.GetDelayMs()) * time.Millisecond, r.GetReason()}
}

// within ends a stream unless what it guards is over, and stop called, in time.
func within(d time.Duration, cancel context.CancelCauseFunc) (stop func()) {
	t := time.AfterFunc(d, func() { cancel(fmt.Errorf("%w (%v)", errSilent, d)) })
	return func() { t.Stop() }
}

// cause prefers the reason why ctx was cancelled to the error it made.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && err != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}

// newest puts v into a channel that holds one, in place of what is there. It has one caller.
func newest[T any](ch chan T, v T) {
	select {
	case <-ch:
	default:
	}
	ch <- v
}
