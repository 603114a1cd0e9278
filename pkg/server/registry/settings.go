// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/bus"
)

// Settings are what the fleet's agents should do. Zero leaves an agent its own.
type Settings struct {
	CPUHz    uint32 `json:"cpu_hz"`
	WindowMS uint32 `json:"window_ms"`
}

type settings struct {
	Settings
	Generation uint64 `json:"generation"`
}

const settingsKey = "fleet"

// Decide makes want the fleet's settings: a new generation if it differs from the last.
func (r *Registry) Decide(ctx context.Context, want Settings) error {
	table, err := bus.OpenTable[settings](ctx, r.bus, "settings", 1<<20)
	if err != nil {
		return fmt.Errorf("registry: settings: %w", err)
	}
	r.settings = table
	_, err = table.Create(ctx, settingsKey, settings{Settings: want, Generation: 1})
	if errors.Is(err, bus.ErrConflict) {
		err = table.Modify(ctx, settingsKey, func(s *settings) bool {
			changed := s.Settings != want
			if changed {
				s.Settings, s.Generation = want, s.Generation+1
			}
			return changed
		})
	}
	if err != nil {
		return fmt.Errorf("registry: settings: %w", err)
	}
	return nil
}

// Settings is what the fleet's agents should do now; nil when nothing was ever asked of them.
func (r *Registry) Settings() *diagonv1.Settings {
	if r.settings == nil {
		return nil
	}
	s, _, ok := r.settings.Get(settingsKey)
	if !ok || (s.Settings == Settings{} && s.Generation == 1) {
		return nil
	}
	return &diagonv1.Settings{Generation: s.Generation, CpuHz: s.CPUHz, WindowMs: s.WindowMS}
}
