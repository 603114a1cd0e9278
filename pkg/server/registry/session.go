// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/bus"
)

// earlierLives is how many instances of a node are remembered. One that comes back is
// not a restart, since that makes a new instance, but a second agent of the same name.
const earlierLives = 8

// A Session is one agent's stream on this server. One goroutine calls Heartbeat.
type Session struct {
	r       *Registry
	key     string
	deliver func(*diagonv1.BackendMessage) error

	orders, fence *nats.Subscription
	epoch         uint64 // revision of the registration: a higher one has replaced this one

	fenced     chan struct{}
	fenceOnce  sync.Once
	fenceCause string // set before fenced is closed

	writing sync.Mutex // one write at a time: two of one session would fence each other

	mu    sync.Mutex
	rec   record
	rev   uint64 // of the last write
	next  uint64 // the heartbeat that is expected
	ended bool
}

// Attach writes the node's record and takes its orders from now on. The newest
// registration of a node wins: an older session, here or on another server, is
// fenced. deliver puts a message into the stream's queue; it never blocks, and an
// error means that the agent will not get the message.
func (r *Registry) Attach(ctx context.Context, reg *diagonv1.DaemonRegistrationRequest, deliver func(*diagonv1.BackendMessage) error) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	s := &Session{r: r, key: bus.Token(reg.GetNode()), deliver: deliver, fenced: make(chan struct{}), next: 1}
	if err := s.register(ctx, reg); err != nil {
		return nil, fmt.Errorf("registry: node %q: %w", reg.GetNode(), err)
	}

	r.mu.Lock()
	old := r.sessions[s.rec.Name]
	if old == nil || old.epoch < s.epoch {
		r.sessions[s.rec.Name] = s
	}
	r.mu.Unlock()
	if old != nil && old.epoch < s.epoch {
		old.replaced(newer(s.rec.Instance, r.cfg.Server))
	}

	if err := s.subscribe(); err != nil {
		s.Detach(ctx)
		return nil, fmt.Errorf("registry: node %q: %w", s.rec.Name, err)
	}
	return s, nil
}

// register writes the record over whatever was there; the revision is the session's epoch.
func (s *Session) register(ctx context.Context, reg *diagonv1.DaemonRegistrationRequest) error {
	for {
		old, base, known := s.r.nodes.Get(s.key)
		if !known && s.r.nodes.Len() >= maxNodes {
			return fmt.Errorf("%d nodes are known, and no more are taken", maxNodes)
		}
		s.rec = successor(old, reg, s.r.cfg.Server, s.r.now())

		var err error
		if known {
			s.rev, err = s.r.nodes.Update(ctx, s.key, s.rec, base)
		} else {
			s.rev, err = s.r.nodes.Create(ctx, s.key, s.rec)
		}
		if err == nil {
			s.epoch = s.rev
			s.r.logArrival(old, s.rec)
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond): // the mirror catches up
		}
	}
}

// successor is the record after a registration.
func successor(old record, reg *diagonv1.DaemonRegistrationRequest, server string, now time.Time) record {
	n := record{
		Node: Node{
			Name: reg.GetNode(), BootID: reg.GetBootId(), AgentVersion: reg.GetAgentVersion(),
			Connected: true, Server: server, FirstSeen: old.FirstSeen, LastBeat: now,
			Capabilities: capabilities(reg.GetCapabilities()), Devices: devices(reg.GetDevices()),
			Host: facts(reg.GetHost()), Health: Health{Status: healthUnknown}, Losses: []Loss{},
		},
		Instance: reg.GetInstanceId(), Written: now,
		Earlier: old.Earlier, Rivalry: old.Rivalry,
	}
	if n.FirstSeen.IsZero() {
		n.FirstSeen = now
	}
	if old.Instance == "" || old.Instance == n.Instance {
		return n
	}
	back := slices.ContainsFunc(old.Earlier, func(l life) bool {
		return l.Instance == n.Instance && now.Sub(l.Until) < rivalWindow
	})
	if back {
		n.Rivalry = rivalry{Instances: [2]string{n.Instance, old.Instance}, Seen: now}
	}
	n.Earlier = append([]life{{Instance: old.Instance, Until: now}}, slices.DeleteFunc(slices.Clone(old.Earlier), func(l life) bool {
		return l.Instance == n.Instance || l.Instance == old.Instance
	})...)
	n.Earlier = n.Earlier[:min(len(n.Earlier), earlierLives)]
	return n
}

func (r *Registry) logArrival(old, n record) {
	if n.Rivalry.Seen.Equal(n.Written) {
		r.log.Warn("two agents register under one node name", "node", n.Name, "instance", n.Instance, "other_instance", n.Rivalry.Instances[1],
			"advice", "give each its own --node")
		return
	}
	r.log.Info("node connected", "node", n.Name, "instance", n.Instance, "boot_id", n.BootID, "agent_version", n.AgentVersion,
		"new", old.Instance == "")
}

func ordersSubject(key string) string { return "diagon.orders." + key }
func fenceSubject(key string) string  { return "diagon.fence." + key }

// subscribe takes orders and word of newer registrations, and gives word of this one.
func (s *Session) subscribe() (err error) {
	if s.fence, err = s.r.bus.Conn.Subscribe(fenceSubject(s.key), s.onFence); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if s.orders, err = s.r.bus.Conn.Subscribe(ordersSubject(s.key), s.onOrder); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	msg := nats.NewMsg(fenceSubject(s.key))
	msg.Header.Set("epoch", strconv.FormatUint(s.epoch, 10))
	msg.Header.Set("instance", s.rec.Instance)
	msg.Header.Set("server", s.r.cfg.Server)
	if err := s.r.bus.Conn.PublishMsg(msg); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

func (s *Session) onFence(m *nats.Msg) {
	epoch, err := strconv.ParseUint(m.Header.Get("epoch"), 10, 64)
	if err != nil || epoch <= s.epoch {
		return
	}
	s.replaced(newer(m.Header.Get("instance"), m.Header.Get("server")))
}

func newer(instance, server string) string {
	return fmt.Sprintf("the node registered anew, instance %s on server %s", instance, server)
}

func (s *Session) replaced(why string) {
	s.fenceOnce.Do(func() {
		s.fenceCause = why
		close(s.fenced)
	})
}

// Fenced is closed when a newer registration has taken the session's place; Cause says which.
func (s *Session) Fenced() <-chan struct{} { return s.fenced }

// Cause says, after Fenced is closed, what took the session's place.
func (s *Session) Cause() string {
	<-s.fenced
	return s.fenceCause
}

// Instance is the agent's instance id.
func (s *Session) Instance() string { return s.rec.Instance }

// Heartbeat takes a report. full says that the agent must send its whole state next:
// a report was missed, or this one came out of order.
func (s *Session) Heartbeat(ctx context.Context, hb *diagonv1.DaemonHeartbeatRequest) (full bool) {
	s.mu.Lock()
	gap := hb.GetSequence() != s.next
	s.next = hb.GetSequence() + 1
	changed := s.merge(hb)
	due := changed || s.r.now().Sub(s.rec.Written) >= s.r.cfg.Record
	s.mu.Unlock()
	if due {
		s.write(ctx)
	}
	return gap && !hb.GetFull()
}

// merge brings the record up to date and says whether something changed that
// the other servers should know now and not within Config.Record. Called with mu held.
func (s *Session) merge(hb *diagonv1.DaemonHeartbeatRequest) bool {
	n := &s.rec
	n.LastBeat = s.r.now()
	changed := false
	if hb.GetHealth() != nil {
		h := health(hb.GetHealth())
		changed = h.Status != n.Health.Status || h.Message != n.Health.Message
		n.Health = h
	}
	full := hb.GetFull()
	losses, _ := merged(n.Losses, losses(hb.GetLosses()), full, func(l Loss) string { return l.Place })
	caps, capsChanged := merged(n.Capabilities, capabilities(hb.GetCapabilities()), full, func(c Capability) string { return c.Name })
	devs, devsChanged := merged(n.Devices, devices(hb.GetDevices()), full, func(d Device) string { return d.Kind + " " + d.ID })
	n.Losses, n.Capabilities, n.Devices = losses, caps, devs
	return changed || capsChanged || devsChanged
}

// write brings the record to the other servers. A conflict means that a newer
// registration owns it.
func (s *Session) write(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.rec.Written = s.r.now()
	rec, rev := s.rec, s.rev
	s.mu.Unlock()

	rev, err := s.r.nodes.Update(ctx, s.key, rec, rev)
	if errors.Is(err, bus.ErrConflict) {
		s.replaced("the node registered anew")
		return
	}
	if err != nil {
		s.r.log.Warn("cannot write a node's record", "node", rec.Name, "err", err)
		return
	}
	s.mu.Lock()
	s.rev = rev
	s.mu.Unlock()
}

func (s *Session) snapshot() record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rec
}

// Detach ends the session: the node is disconnected, unless another session holds
// it by now. It may be called more than once.
func (s *Session) Detach(ctx context.Context) {
	for _, sub := range []*nats.Subscription{s.orders, s.fence} {
		if sub != nil {
			_ = sub.Unsubscribe() // only fails on a closed connection, which ends it too
		}
	}
	s.r.mu.Lock()
	if s.r.sessions[s.rec.Name] == s {
		delete(s.r.sessions, s.rec.Name)
	}
	s.r.mu.Unlock()

	s.mu.Lock()
	s.rec.Connected = false
	again := s.ended
	s.mu.Unlock()
	if again {
		return
	}
	s.write(ctx)
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
}
