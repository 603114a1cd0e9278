// SPDX-License-Identifier: Apache-2.0

package captures

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/bus"
)

// Config is what an operator decides about captures.
type Config struct {
	Age   time.Duration // older captures are deleted with their artifacts
	Count int           // so are the oldest when there are more
}

// DefaultConfig keeps a month, and at most 2,000.
func DefaultConfig() Config { return Config{Age: 30 * 24 * time.Hour, Count: 2000} }

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Age < time.Hour:
		return fmt.Errorf("capture-age: %v is less than 1h", c.Age)
	case c.Count < 1:
		return fmt.Errorf("capture-count: %d is less than 1", c.Count)
	}
	return nil
}

// Nodes is what the manager must know of nodes: whether one exists (an error when
// not), and the way to it (an error when the order did not get there).
type Nodes interface {
	Exists(name string) error
	Send(ctx context.Context, node string, m *diagonv1.BackendMessage) error
}

// Files deletes what came of a capture.
type Files interface {
	Delete(ctx context.Context, capture string) error
}

const (
	tableBytes = 256 << 20
	sweepEvery = time.Second

	maxArtifacts   = 16 // of one target
	sendsAtOnce    = 64
	maxMessageRune = 1000 // of a node's sentence
)

var (
	// ErrNotFound means that there is no such capture, or that the node is none of its targets.
	ErrNotFound = errors.New("no such capture")
	// ErrNotWanted means that nobody waits for this result any more.
	ErrNotWanted = errors.New("not wanted any more")
)

// A Manager keeps captures. Its methods may be called from several goroutines.
type Manager struct {
	cfg     Config
	nodes   Nodes
	files   Files
	log     *slog.Logger
	now     func() time.Time
	heads   *bus.Table[head]
	targets *bus.Table[target]

	sending sync.WaitGroup
	ctx     context.Context // ends what the manager started by itself
	stop    context.CancelFunc
}

// Open reads the captures. Close ends what the manager started.
func Open(ctx context.Context, b *bus.Bus, nodes Nodes, files Files, cfg Config, log *slog.Logger, now func() time.Time) (*Manager, error) {
	heads, err := bus.OpenTable[head](ctx, b, "captures", tableBytes)
	if err != nil {
		return nil, fmt.Errorf("captures: %w", err)
	}
	targets, err := bus.OpenTable[target](ctx, b, "targets", tableBytes)
	if err != nil {
		return nil, fmt.Errorf("captures: %w", err)
	}
	m := &Manager{cfg: cfg, nodes: nodes, files: files, log: log, now: now, heads: heads, targets: targets}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m, nil
}

// Close ends the sending of orders; what was not sent is sent after the next start.
func (m *Manager) Close() {
	m.stop()
	m.sending.Wait()
}

func targetKey(id, node string) string { return id + "." + bus.Token(node) }

// Create records a capture and sends its orders; it does not wait for them to arrive.
// A request that cannot be granted is an error that wraps ErrInvalid.
func (m *Manager) Create(ctx context.Context, r Request) (Capture, error) {
	if err := r.Validate(); err != nil {
		return Capture{}, err
	}
	for _, node := range r.Targets.Nodes {
		if err := m.nodes.Exists(node); err != nil {
			return Capture{}, fmt.Errorf("%w: targets.nodes: %w", ErrInvalid, err)
		}
	}
	now := m.now().UTC()
	h := r.head(ulid.Make().String(), now)
	// The head comes first: should the server end in between, retention still finds what was made.
	if _, err := m.heads.Create(ctx, h.ID, h); err != nil {
		return Capture{}, fmt.Errorf("captures: %w", err)
	}
	for _, node := range h.Nodes {
		t := target{Capture: h.ID, Deadline: h.Deadline, Target: Target{Node: node, PIDs: h.PIDs, Artifacts: []Artifact{}}}
		t.move(Pending, "the order is on its way to the node", now)
		if _, err := m.targets.Create(ctx, targetKey(h.ID, node), t); err != nil {
			return Capture{}, fmt.Errorf("captures: %w", err)
		}
	}
	m.log.Info("capture is asked for", "capture", h.ID, "kind", h.Kind, "nodes", len(h.Nodes), "duration", h.Duration)
	m.each(h.Nodes, func(ctx context.Context, node string) { m.send(ctx, h, node) })
	return m.view(h), nil
}

// each calls f for every node, some at once, in goroutines that Close waits for.
func (m *Manager) each(nodes []string, f func(ctx context.Context, node string)) {
	todo := make(chan string, len(nodes))
	for _, n := range nodes {
		todo <- n
	}
	close(todo)
	for range min(sendsAtOnce, len(nodes)) {
		m.sending.Go(func() {
			for n := range todo {
				if m.ctx.Err() != nil {
					return
				}
				f(m.ctx, n)
			}
		})
	}
}

// send brings the order to one node and writes down how that went.
func (m *Manager) send(ctx context.Context, h head, node string) {
	err := m.nodes.Send(ctx, node, &diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_Capture{Capture: h.order()}})
	message := "the node has been told; waiting for its answer"
	if err != nil {
		message = fmt.Sprintf("the order waits for the node until %s: %v", h.Deadline.Format(time.TimeOnly+" MST"), err)
	}
	m.modify(ctx, h.ID, node, func(t *target) bool {
		if t.State != Pending || t.Message == message || t.Instance != "" {
			return false
		}
		t.move(Pending, message, m.now().UTC())
		return true
	})
}

// order is what a node is told.
func (h head) order() *diagonv1.CaptureRequest {
	o := &diagonv1.CaptureRequest{
		Id: h.ID, Kind: h.Kind, Pids: h.PIDs, DurationMs: uint32(h.Duration.Milliseconds()),
		StartUnixNano: h.Start.UnixNano(), DeadlineUnixNano: h.Deadline.UnixNano(),
	}
	if h.Hz > 0 {
		o.Options = map[string]string{OptionHz: fmt.Sprint(h.Hz)}
	}
	return o
}

// OptionHz is the option that carries the samples per second and CPU.
const OptionHz = "hz"

// modify changes a target's record; what fails is said in the log, since the caller
// has nobody to tell.
func (m *Manager) modify(ctx context.Context, id, node string, change func(*target) bool) {
	err := m.targets.Modify(ctx, targetKey(id, node), change)
	if err != nil && ctx.Err() == nil {
		m.log.Warn("cannot write a capture's record", "capture", id, "node", node, "err", err)
	}
}

// Cancel ends a capture's targets that have not ended, and tells their nodes.
func (m *Manager) Cancel(ctx context.Context, id string) (Capture, error) {
	h, _, ok := m.heads.Get(id)
	if !ok {
		return Capture{}, fmt.Errorf("capture %q: %w", id, ErrNotFound)
	}
	var told []string
	for _, node := range h.Nodes {
		changed := false
		err := m.targets.Modify(ctx, targetKey(id, node), func(t *target) bool {
			changed = !final(t.State)
			if changed {
				t.move(Cancelled, "cancelled", m.now().UTC())
				t.Done = nil
			}
			return changed
		})
		if err != nil {
			return Capture{}, fmt.Errorf("captures: cancel: %w", err)
		}
		if changed {
			told = append(told, node)
		}
	}
	m.log.Info("capture is cancelled", "capture", id, "nodes", len(told))
	m.each(told, func(ctx context.Context, node string) { m.sendCancel(ctx, h.ID, node) })
	return m.view(h), nil
}

func (m *Manager) sendCancel(ctx context.Context, id, node string) {
	err := m.nodes.Send(ctx, node, cancelOrder(id))
	if err != nil {
		m.log.Info("node was not told of a cancellation and will be when it is back", "capture", id, "node", node, "err", err)
		return
	}
	m.modify(ctx, id, node, func(t *target) bool { t.Told = true; return true })
}

func cancelOrder(id string) *diagonv1.BackendMessage {
	return &diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_CancelCapture{
		CancelCapture: &diagonv1.CancelCapture{Id: id, Reason: "cancelled by a person"}}}
}

// Get returns a capture, or ErrNotFound.
func (m *Manager) Get(id string) (Capture, error) {
	h, _, ok := m.heads.Get(id)
	if !ok {
		return Capture{}, fmt.Errorf("capture %q: %w", id, ErrNotFound)
	}
	return m.view(h), nil
}

// List returns the newest captures, newest first; limit 0 returns all.
func (m *Manager) List(limit int) []Capture {
	heads := m.sorted()
	if limit > 0 {
		heads = heads[:min(limit, len(heads))]
	}
	out := make([]Capture, len(heads))
	for i, h := range heads {
		out[i] = m.view(h)
	}
	return out
}

// sorted lists the heads, newest first: ids sort by their time.
func (m *Manager) sorted() []head {
	heads := make([]head, 0, m.heads.Len())
	for _, h := range m.heads.All() {
		heads = append(heads, h)
	}
	slices.SortFunc(heads, func(a, b head) int { return strings.Compare(b.ID, a.ID) })
	return heads
}

func (m *Manager) view(h head) Capture {
	c := Capture{
		ID: h.ID, Kind: h.Kind, Created: h.Created, Start: h.Start, Deadline: h.Deadline,
		DurationMS: h.Duration.Milliseconds(), Hz: h.Hz, Targets: make([]Target, 0, len(h.Nodes)),
	}
	for _, node := range h.Nodes {
		t, _, ok := m.targets.Get(targetKey(h.ID, node))
		if !ok {
			t.Target = Target{Node: node, PIDs: h.PIDs, State: Failed, Message: "the server ended before the order was written down", Artifacts: []Artifact{}}
		}
		c.Targets = append(c.Targets, t.Target)
	}
	c.State, c.Message = overall(c.Targets)
	return c
}
