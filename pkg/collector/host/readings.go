// SPDX-License-Identifier: Apache-2.0

package host

import (
	"time"

	"github.com/prometheus/procfs"

	"diagon.dev/diagon/pkg/profile"
)

// readings says what now tells, and what happened between before and now.
// before may be empty: then there are no rates.
func readings(before, now snapshot, devices int) []profile.Reading {
	w := &writer{at: now.at}
	if !before.at.IsZero() {
		w.interval = now.at.Sub(before.at).Seconds()
	}
	w.cpu(before.stat, now.stat)
	w.load(now.load)
	w.memory(now.memory)
	w.pressure(before.pressure, now.pressure)
	w.network(before.network, now.network, devices)
	w.disks(before.disks, now.disks, devices)
	w.kernel(before.stat, now.stat)
	w.machine(now)
	return w.out
}

// A writer collects the readings of one time.
type writer struct {
	at       time.Time
	interval float64 // seconds since the snapshot before; 0 when there was none
	out      []profile.Reading
}

func (w *writer) gauge(metric string, value float64, labels ...profile.Label) {
	w.out = append(w.out, profile.Reading{Time: w.at, Metric: metric, Labels: labels, Value: value})
}

// rate writes a counter's growth times unit, per second. A counter that shrank
// was reset: how much it grew is not known, so nothing is written.
func (w *writer) rate(metric string, before, now uint64, unit float64, labels ...profile.Label) {
	if w.interval <= 0 || now < before {
		return
	}
	w.gauge(metric, float64(now-before)*unit/w.interval, labels...)
}

// ratio writes the share of the interval that a counter of time grew by. The two
// snapshots' own duration can make it a little more than all of it.
func (w *writer) ratio(metric string, before, now uint64, seconds float64, labels ...profile.Label) {
	if w.interval <= 0 || now < before {
		return
	}
	w.gauge(metric, min(1, float64(now-before)*seconds/w.interval), labels...)
}

func (w *writer) cpu(before, now *procfs.Stat) {
	if before == nil || now == nil {
		return
	}
	b, n := before.CPUTotal, now.CPUTotal
	modes := []struct {
		name  string
		spent float64
	}{
		{"user", n.User + n.Nice - b.User - b.Nice}, // guests' time is in it already
		{"system", n.System - b.System},
		{"iowait", n.Iowait - b.Iowait},
		{"irq", n.IRQ + n.SoftIRQ - b.IRQ - b.SoftIRQ},
		{"steal", n.Steal - b.Steal},
		{"idle", n.Idle - b.Idle},
	}
	var total float64
	for i := range modes {
		modes[i].spent = max(0, modes[i].spent) // idle and iowait may run backwards
		total += modes[i].spent
	}
	if total == 0 {
		return
	}
	for _, m := range modes {
		w.gauge(cpuRatio, m.spent/total, profile.Label{Name: "mode", Value: m.name})
	}
}

func (w *writer) load(now *procfs.LoadAvg) {
	if now == nil {
		return
	}
	w.gauge(load1, now.Load1)
	w.gauge(load5, now.Load5)
	w.gauge(load15, now.Load15)
}

func (w *writer) memory(now *procfs.Meminfo) {
	if now == nil {
		return
	}
	w.known(memoryTotal, now.MemTotalBytes)
	w.known(memoryAvailable, now.MemAvailableBytes)
	w.used(memoryUsed, now.MemTotalBytes, now.MemAvailableBytes)
	if now.CachedBytes != nil && now.BuffersBytes != nil {
		w.gauge(memoryCached, float64(*now.CachedBytes+*now.BuffersBytes))
	}
	w.known(swapTotal, now.SwapTotalBytes)
	w.used(swapUsed, now.SwapTotalBytes, now.SwapFreeBytes)
}

func (w *writer) known(metric string, value *uint64) {
	if value != nil {
		w.gauge(metric, float64(*value))
	}
}

func (w *writer) used(metric string, total, free *uint64) {
	if total != nil && free != nil && *total >= *free {
		w.gauge(metric, float64(*total-*free))
	}
}

// pressure uses the kernel's totals, in microseconds, and not its averages: the
// interval is then the same as that of all other rates.
func (w *writer) pressure(before, now map[string]procfs.PSIStats) {
	for _, resource := range resources {
		for _, kind := range []struct {
			name        string
			before, now *procfs.PSILine
		}{
			{"some", before[resource].Some, now[resource].Some},
			{"full", before[resource].Full, now[resource].Full},
		} {
			if kind.before == nil || kind.now == nil {
				continue
			}
			w.ratio(pressureRatio, kind.before.Total, kind.now.Total, 1e-6,
				profile.Label{Name: "resource", Value: resource}, profile.Label{Name: "stalled", Value: kind.name})
		}
	}
}

func (w *writer) kernel(before, now *procfs.Stat) {
	if now == nil {
		return
	}
	w.gauge(running, float64(now.ProcessesRunning))
	w.gauge(blocked, float64(now.ProcessesBlocked))
	if before == nil {
		return
	}
	w.rate(contextSwitches, before.ContextSwitches, now.ContextSwitches, 1)
	w.rate(interrupts, before.IRQTotal, now.IRQTotal, 1)
	w.rate(forks, before.ProcessCreated, now.ProcessCreated, 1)
}

func (w *writer) machine(now snapshot) {
	if now.files != nil {
		w.gauge(filesOpen, float64(now.files.open))
		w.gauge(filesLimit, float64(now.files.limit))
	}
	if now.uptime != nil {
		w.gauge(uptime, *now.uptime)
	}
	for _, source := range now.unreadable {
		w.gauge(unreadable, 1, profile.Label{Name: "source", Value: source})
	}
}
