// SPDX-License-Identifier: Apache-2.0

package captures

import (
	"context"
	"fmt"

	"diagon.dev/diagon/pkg/server/periodic"
)

// Run ends what has passed its deadline and deletes what is beyond Config's
// bounds, until ctx is done.
func (m *Manager) Run(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, func(ctx context.Context) {
		m.expire(ctx)
		m.forget(ctx)
	})
}

// expire ends every target whose deadline has passed. Each server does so; whoever
// comes second finds it done.
func (m *Manager) expire(ctx context.Context) {
	now := m.now().UTC()
	for _, t := range m.targets.All() {
		if final(t.State) || now.Before(t.Deadline) {
			continue
		}
		m.modify(ctx, t.Capture, t.Node, func(t *target) bool {
			if final(t.State) {
				return false
			}
			t.move(Expired, fmt.Sprintf("the deadline passed; the last that was known: %s", t.Message), now)
			return true
		})
		m.log.Info("capture passed its deadline on a node", "capture", t.Capture, "node", t.Node, "last", t.Message)
	}
}

// forget deletes captures that are too old or too many, with what came of them.
func (m *Manager) forget(ctx context.Context) {
	now := m.now()
	for i, h := range m.sorted() {
		if i < m.cfg.Count && now.Sub(h.Created) < m.cfg.Age {
			continue
		}
		if now.Before(h.Deadline) { // it may still write
			continue
		}
		if err := m.delete(ctx, h); err != nil {
			m.log.Warn("cannot delete a capture", "capture", h.ID, "err", err)
			return
		}
		m.log.Info("capture is deleted", "capture", h.ID, "created", h.Created)
	}
}

// delete takes the head last, so that a deletion that was cut short is done again.
func (m *Manager) delete(ctx context.Context, h head) error {
	if err := m.files.Delete(ctx, h.ID); err != nil {
		return err
	}
	for _, node := range h.Nodes {
		if err := m.targets.Delete(ctx, targetKey(h.ID, node)); err != nil {
			return err
		}
	}
	return m.heads.Delete(ctx, h.ID)
}
