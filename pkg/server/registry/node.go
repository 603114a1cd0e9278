// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"
	"strings"
	"time"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// A Node is what is known of one agent, in the words of the HTTP API.
type Node struct {
	Name         string            `json:"name"`
	BootID       string            `json:"boot_id"`
	AgentVersion string            `json:"agent_version"`
	Connected    bool              `json:"connected"`
	Server       string            `json:"server"` // that holds, or last held, the agent's stream
	FirstSeen    time.Time         `json:"first_seen"`
	LastBeat     time.Time         `json:"last_heartbeat"`
	Capabilities []Capability      `json:"capabilities"`
	Devices      []Device          `json:"devices"`
	Host         map[string]string `json:"host"`
	Health       Health            `json:"health"`
	Losses       []Loss            `json:"losses"`
}

// A Capability is something a host can do, or why it cannot.
type Capability struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason"`
}

// A Device is an accelerator of a node.
type Device struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Model string `json:"model"`
}

// A Loss counts what was dropped at a place since the agent started.
type Loss struct {
	Place string `json:"place"`
	Count uint64 `json:"count"`
}

// Health is what an agent says of itself.
type Health struct {
	Status         string  `json:"status"` // "ok", "degraded" or "unknown"
	Message        string  `json:"message"`
	SpooledBytes   uint64  `json:"spooled_bytes"`
	SpooledBatches uint64  `json:"spooled_batches"`
	RSSBytes       uint64  `json:"rss_bytes"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	Samples        uint64  `json:"samples"`
}

// Words of Health.Status.
const (
	healthOK       = "ok"
	healthDegraded = "degraded"
	healthUnknown  = "unknown"
)

// What an agent says is bounded, so that a record fits a message of the bus.
const (
	maxList = 256  // entries of each list: a host has tens of capabilities and devices
	maxText = 1024 // bytes of each text
)

func capabilities(in []*diagonv1.Capability) []Capability {
	out := make([]Capability, 0, len(in))
	for _, c := range in[:min(len(in), maxList)] {
		out = append(out, Capability{Name: cut(c.GetName()), Available: c.GetAvailable(), Reason: cut(c.GetReason())})
	}
	return out
}

func devices(in []*diagonv1.Device) []Device {
	out := make([]Device, 0, len(in))
	for _, d := range in[:min(len(in), maxList)] {
		out = append(out, Device{Kind: cut(d.GetKind()), ID: cut(d.GetId()), Model: cut(d.GetModel())})
	}
	return out
}

func facts(in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for _, k := range slices.Sorted(maps.Keys(in)) {
		if len(out) < maxList {
			out[cut(k)] = cut(in[k])
		}
	}
	return out
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

func health(h *diagonv1.Health) Health {
	status := healthUnknown
	switch h.GetStatus() {
	case diagonv1.Health_STATUS_OK:
		status = healthOK
	case diagonv1.Health_STATUS_DEGRADED:
		status = healthDegraded
	}
	return Health{
		Status: status, Message: cut(h.GetMessage()),
		SpooledBytes: h.GetSpooledBytes(), SpooledBatches: h.GetSpooledBatches(),
		RSSBytes: h.GetRssBytes(), CPUSeconds: h.GetCpuSeconds(), Samples: h.GetSamples(),
	}
}

func losses(in []*diagonv1.Loss) []Loss {
	out := make([]Loss, 0, len(in))
	for _, l := range in[:min(len(in), maxList)] {
		out = append(out, Loss{Place: cut(l.GetPlace()), Count: l.GetCount()})
	}
	return out
}

// merged is a list after a report: the report itself when that is full, otherwise what
// was known with what was sent put in its place. It is sorted by key, never shares memory with
// have, and holds at most maxList entries.
func merged[T comparable](have, sent []T, full bool, key func(T) string) (list []T, changed bool) {
	out := slices.Clone(have)
	if full {
		out = []T{}
	}
	for _, v := range sent {
		i := slices.IndexFunc(out, func(o T) bool { return key(o) == key(v) })
		if i >= 0 {
			out[i] = v
		} else if len(out) < maxList {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return out, !slices.Equal(out, have)
}
