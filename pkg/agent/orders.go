// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/agent/doctor"
	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// orders is what the server may ask of the agent. It implements uplink.Orders.
type orders struct{ a *agent }

func (o orders) Capture(r *diagonv1.CaptureRequest) { o.a.captures.Capture(r) }
func (o orders) Cancel(id, reason string)           { o.a.captures.Cancel(id, reason) }

// Settings applies desired state within the node's ceilings and answers what came of it.
func (o orders) Settings(s *diagonv1.Settings) {
	a := o.a
	var notes []string
	if hz := int(s.GetCpuHz()); hz > 0 {
		cfg := a.cfg.OnCPU
		var note string
		cfg.Hz, note = a.cfg.Ceilings.rate(hz)
		notes = append(notes, note)
		a.sample(cfg)
	}
	if length := time.Duration(s.GetWindowMs()) * time.Millisecond; length > 0 {
		within := min(max(length, minWindow), maxWindow)
		if within != length {
			notes = append(notes, fmt.Sprintf("window clamped from %v to %v", length, within))
		}
		a.pipeline.SetLength(within)
	}
	a.settings.Store(s.GetGeneration())
	message := sentence(notes...)
	a.log.Info("settings applied", "generation", s.GetGeneration(), "rate", s.GetCpuHz(), "window_ms", s.GetWindowMs(), "note", message)
	a.session.ReportSettings(&diagonv1.SettingsStatus{Generation: s.GetGeneration(), Applied: true, Message: message})
}

// reporter is what the agent says of itself. It implements uplink.Reporter.
type reporter struct{ a *agent }

func (r reporter) Registration() *diagonv1.DaemonRegistrationRequest {
	return &diagonv1.DaemonRegistrationRequest{
		AgentVersion:       r.a.cfg.Version,
		Capabilities:       r.Capabilities(),
		Devices:            r.Devices(),
		SettingsGeneration: r.a.settings.Load(),
		Host:               hostFacts(),
	}
}

func (r reporter) Health() *diagonv1.Health {
	h := &diagonv1.Health{
		Status:  diagonv1.Health_STATUS_OK,
		Samples: r.a.quality.samples[profile.Samples].Load(),
	}
	for _, s := range r.a.runner.States() {
		if s.Phase == collector.Failed || s.Phase == collector.Unavailable {
			h.Status = diagonv1.Health_STATUS_DEGRADED
			h.Message = sentence(h.Message, fmt.Sprintf("%s is %s: %v", s.Name, s.Phase, s.Err))
		}
	}
	if p, err := procfs.NewProc(os.Getpid()); err == nil {
		if stat, err := p.Stat(); err == nil {
			h.RssBytes = uint64(max(stat.ResidentMemory(), 0))
			h.CpuSeconds = stat.CPUTime()
		}
	}
	return h
}

func (r reporter) Losses() []*diagonv1.Loss { return lossesToWire(r.a.losses.Total()) }

// Capabilities are what the host was found to allow at start, and how the collectors fare now.
func (r reporter) Capabilities() []*diagonv1.Capability {
	var out []*diagonv1.Capability
	for _, s := range r.a.runner.States() {
		c := &diagonv1.Capability{Name: s.Name, Available: s.Phase == collector.Running}
		if !c.Available {
			c.Reason = fmt.Sprintf("%s: %v", s.Phase, s.Err)
		}
		out = append(out, c)
	}
	for _, f := range r.a.findings {
		if f.Name == doctor.OnCPU || f.Area == doctor.AreaLater {
			continue // the collector's own state says more; what nothing uses says nothing
		}
		out = append(out, &diagonv1.Capability{Name: f.Name, Available: f.Works, Reason: sentence(f.Why, f.Do)})
	}
	return out
}

// Devices are the accelerators of this node; none are looked for yet.
func (r reporter) Devices() []*diagonv1.Device { return nil }
