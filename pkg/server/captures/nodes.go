// SPDX-License-Identifier: Apache-2.0

package captures

import (
	"context"
	"fmt"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/bus"
)

// Returned takes what a node knows at its registration and answers what it must be told:
// orders it has not had, cancellations it missed.
//
// An order is sent again under the same id, which the node recognises. What was running
// in an agent that has been started anew is lost, and said to be.
func (m *Manager) Returned(ctx context.Context, node, instance string, known []*diagonv1.CaptureUpdate) []*diagonv1.BackendMessage {
	alive := map[string]bool{}
	for _, u := range known {
		alive[u.GetId()] = true
		if err := m.Update(ctx, node, instance, u); err != nil {
			m.log.Debug("node reports a capture that is not here", "node", node, "capture", u.GetId(), "err", err)
		}
	}
	var tell []*diagonv1.BackendMessage
	for _, t := range m.targetsOf(node) {
		h, _, ok := m.heads.Get(t.Capture)
		switch {
		case !ok:
		case t.State == Cancelled && !t.Told && alive[t.Capture]:
			tell = append(tell, cancelOrder(t.Capture))
		case final(t.State) || alive[t.Capture] || !m.now().Before(t.Deadline):
		case t.Instance != "" && t.Instance != instance:
			m.modify(ctx, t.Capture, node, func(t *target) bool {
				if final(t.State) {
					return false
				}
				t.move(Failed, "the node's agent was started anew in the middle of it", m.now().UTC())
				return true
			})
		default:
			tell = append(tell, &diagonv1.BackendMessage{Message: &diagonv1.BackendMessage_Capture{Capture: h.order()}})
		}
	}
	return tell
}

// targetsOf lists what concerns a node.
func (m *Manager) targetsOf(node string) []target {
	var out []target
	for _, t := range m.targets.All() {
		if t.Node == node {
			out = append(out, t)
		}
	}
	return out
}

// Update takes what a node says about a capture; ErrNotFound when the capture is not the node's.
func (m *Manager) Update(ctx context.Context, node, instance string, u *diagonv1.CaptureUpdate) error {
	state, ok := wireState(u.GetState())
	if !ok {
		return fmt.Errorf("capture %q: state %v is not known to this server", u.GetId(), u.GetState())
	}
	if len(u.GetArtifacts()) > maxArtifacts {
		return fmt.Errorf("capture %q: announces %d artifacts, at most %d", u.GetId(), len(u.GetArtifacts()), maxArtifacts)
	}
	if _, err := m.find(u.GetId(), node); err != nil {
		return err
	}
	err := m.targets.Modify(ctx, targetKey(u.GetId(), node), func(t *target) bool {
		return t.heard(state, cut(u.GetMessage()), u.GetArtifacts(), instance, m.now().UTC())
	})
	if err != nil {
		return fmt.Errorf("captures: %w", err)
	}
	if final(state) {
		m.log.Info("capture ended on a node", "capture", u.GetId(), "node", node, "state", state, "message", u.GetMessage())
	}
	return nil
}

// Awaits says whether an artifact of that name may come from the node: nil, or an error that
// wraps ErrNotFound or ErrNotWanted. A result that comes after its deadline is still welcome.
func (m *Manager) Awaits(id, node, name string) error {
	t, err := m.find(id, node)
	if err != nil {
		return err
	}
	if t.State == Cancelled {
		return fmt.Errorf("capture %q was cancelled: %w", id, ErrNotWanted)
	}
	full := ArtifactName(node, name)
	for _, a := range t.Artifacts {
		if a.Name == full {
			return nil
		}
	}
	if len(t.Artifacts) >= maxArtifacts {
		return fmt.Errorf("capture %q has %d artifacts of node %q already: %w", id, maxArtifacts, node, ErrNotWanted)
	}
	return nil
}

// Landed adds an artifact that is stored.
func (m *Manager) Landed(ctx context.Context, id, node string, a Artifact) error {
	if _, err := m.find(id, node); err != nil {
		return err
	}
	err := m.targets.Modify(ctx, targetKey(id, node), func(t *target) bool { return t.landed(a, m.now().UTC()) })
	if err != nil {
		return fmt.Errorf("captures: %w", err)
	}
	return nil
}

// Kind is the capture's kind; "" when there is no such capture.
func (m *Manager) Kind(id string) string {
	h, _, _ := m.heads.Get(id)
	return h.Kind
}

func (m *Manager) find(id, node string) (target, error) {
	if !wellFormed(id) {
		return target{}, fmt.Errorf("capture %q: %w", id, ErrNotFound)
	}
	t, _, ok := m.targets.Get(targetKey(id, node))
	if !ok {
		return target{}, fmt.Errorf("capture %q of node %q: %w", id, node, ErrNotFound)
	}
	return t, nil
}

// wellFormed says that an id is one token, so that it cannot reach into other keys.
func wellFormed(id string) bool { return id != "" && bus.Token(id) == id }

// cut bounds what a node may say.
func cut(message string) string {
	n := 0
	for i := range message {
		if n++; n > maxMessageRune {
			return message[:i] + "…"
		}
	}
	return message
}
