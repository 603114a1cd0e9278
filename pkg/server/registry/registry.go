// SPDX-License-Identifier: Apache-2.0

// Package registry knows the nodes: which agents there are, how they are, and
// how an order reaches one of them on whichever server holds its stream.
//
// A node's record is written by the session that holds its stream, and by nobody else:
// every write names the revision of the last one, so a session that has been
// replaced finds out at its next write, wherever the newer one lives.
package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/bus"
	"diagon.dev/diagon/pkg/server/periodic"
)

// Config is what an operator decides about the registry.
type Config struct {
	Server    string        // this server's name, its own in the fleet
	Heartbeat time.Duration // how often agents report
	Silence   int           // heartbeats in a row that may be missing before a node counts as disconnected
	Record    time.Duration // how often an unchanged node's record is written for the other servers
	NodeAge   time.Duration // a node not heard of for so long is forgotten
}

// DefaultConfig asks for a heartbeat each 15 seconds.
func DefaultConfig() Config {
	return Config{Heartbeat: 15 * time.Second, Silence: 3, Record: time.Minute, NodeAge: 7 * 24 * time.Hour}
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Server == "":
		return errors.New("server-name: is empty")
	case c.Heartbeat < time.Second || c.Heartbeat > time.Hour:
		return fmt.Errorf("heartbeat: %v is not between 1s and 1h", c.Heartbeat)
	case c.Silence < 1:
		return fmt.Errorf("heartbeat-silence: %d is less than 1", c.Silence)
	case c.Record <= 0:
		return fmt.Errorf("heartbeat-record: %v is not positive", c.Record)
	case c.NodeAge < time.Hour:
		return fmt.Errorf("node-age: %v is less than 1h", c.NodeAge)
	}
	return nil
}

const (
	tableBytes   = 128 << 20
	writeTimeout = 5 * time.Second
	sweepEvery   = time.Minute
	maxNodes     = 100_000 // records, so that invented names cannot fill the disk
)

var (
	// ErrNotConnected means that no server holds a stream of the node.
	ErrNotConnected = errors.New("node is not connected")
	// ErrUnknownNode means that no agent of that name was ever seen.
	ErrUnknownNode = errors.New("no such node")
)

// record is what the table holds of a node.
type record struct {
	Node
	Instance string    `json:"instance"`          // of the agent that holds the record
	Earlier  []life    `json:"earlier,omitempty"` // instances before this one, newest first
	Rivalry  rivalry   `json:"rivalry,omitzero"`
	Written  time.Time `json:"written"`
}

// life is one run of an agent.
type life struct {
	Instance string    `json:"instance"`
	Until    time.Time `json:"until"`
}

// A Registry is one server's view of all nodes. Its methods may be called from several goroutines.
type Registry struct {
	cfg   Config
	bus   *bus.Bus
	nodes *bus.Table[record]
	log   *slog.Logger
	now   func() time.Time

	settings *bus.Table[settings] // nil until Decide

	mu       sync.Mutex
	sessions map[string]*Session // by node: those whose stream this server holds
}

// Open reads the nodes. What this server held when it last ended is marked
// as disconnected.
func Open(ctx context.Context, b *bus.Bus, cfg Config, log *slog.Logger, now func() time.Time) (*Registry, error) {
	nodes, err := bus.OpenTable[record](ctx, b, "nodes", tableBytes)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	r := &Registry{cfg: cfg, bus: b, nodes: nodes, log: log, now: now, sessions: map[string]*Session{}}
	for key, n := range nodes.All() {
		if n.Server != cfg.Server || !n.Connected {
			continue
		}
		err := nodes.Modify(ctx, key, func(n *record) bool {
			mine := n.Server == cfg.Server
			n.Connected = n.Connected && !mine
			return mine
		})
		if err != nil {
			return nil, fmt.Errorf("registry: mark a node of the last run as disconnected: %w", err)
		}
	}
	return r, nil
}

// Run forgets nodes that have not been heard of for Config.NodeAge, until ctx is done.
func (r *Registry) Run(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, r.forget)
}

func (r *Registry) forget(ctx context.Context) {
	for key, n := range r.nodes.All() {
		if r.view(n).Connected || r.now().Sub(n.LastBeat) < r.cfg.NodeAge {
			continue
		}
		if err := r.nodes.Delete(ctx, key); err != nil {
			r.log.Warn("cannot forget a node", "node", n.Name, "err", err)
			continue
		}
		r.log.Info("node is forgotten", "node", n.Name, "last_heartbeat", n.LastBeat)
	}
}

// Nodes lists every node, by name.
func (r *Registry) Nodes() []Node {
	out := make([]Node, 0, r.nodes.Len())
	for _, n := range r.nodes.All() {
		out = append(out, r.view(n))
	}
	slices.SortFunc(out, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Node returns the node of that name, or ErrUnknownNode.
func (r *Registry) Node(name string) (Node, error) {
	n, _, ok := r.nodes.Get(bus.Token(name))
	if !ok {
		return Node{}, fmt.Errorf("node %q: %w", name, ErrUnknownNode)
	}
	return r.view(n), nil
}

// Sessions is the number of streams this server holds.
func (r *Registry) Sessions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}

// Tell puts m into the queue of every session that this server holds.
func (r *Registry) Tell(m *diagonv1.BackendMessage) {
	r.mu.Lock()
	sessions := make([]*Session, 0, len(r.sessions))
	for _, s := range r.sessions {
		sessions = append(sessions, s)
	}
	r.mu.Unlock()
	for _, s := range sessions {
		_ = s.deliver(m) // a full queue ends its stream, and says so there
	}
}

// view is what a person is shown of a record: what the session knows where it is
// here, and otherwise the record, as far as it can still be believed.
func (r *Registry) view(n record) Node {
	r.mu.Lock()
	s := r.sessions[n.Name]
	r.mu.Unlock()
	if s != nil {
		n = s.snapshot()
	}
	out := n.Node
	switch silent := time.Duration(r.cfg.Silence) * r.cfg.Heartbeat; {
	case s != nil:
		out.Connected = out.Connected && r.now().Sub(out.LastBeat) <= silent
	case n.Server == r.cfg.Server:
		out.Connected = false
	default:
		out.Connected = out.Connected && r.now().Sub(n.Written) <= silent+r.cfg.Record
	}
	if !n.Rivalry.Seen.IsZero() && r.now().Before(n.Rivalry.until()) {
		out.Health.Status = healthDegraded
		out.Health.Message = strings.TrimSpace(out.Health.Message + " " + n.Rivalry.String())
	}
	return out
}

// Exists returns nil when the node was ever seen, and otherwise ErrUnknownNode.
func (r *Registry) Exists(name string) error {
	_, err := r.Node(name)
	return err
}
