// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/host"
	"diagon.dev/diagon/pkg/profile"
)

// metrics answers Prometheus from the books that the agent's parts keep themselves.
type metrics struct{ a *agent }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descBuild      = desc("diagon_build_info", "Always 1; the version is a label.", "version")
	descSamples    = desc("diagon_samples_total", "Samples taken, by sample type.", "type")
	descLost       = desc("diagon_lost_total", "What was dropped, by the place where it happened.", "place")
	descFrames     = desc("diagon_frames_total", "Frames of sampled stacks, by whether a name was found.", "named")
	descStacks     = desc("diagon_stacks_total", "Sampled stacks, by whether they reach the start of their thread.", "root")
	descMapBytes   = desc("diagon_bpf_map_bytes", "Memory of the BPF maps, as the kernel accounts it.")
	descRunSeconds = desc("diagon_bpf_run_seconds_total", "Time in BPF programs; counted while the kernel's BPF statistics are on.", "program")
	descRuns       = desc("diagon_bpf_runs_total", "Runs of BPF programs; counted while the kernel's BPF statistics are on.", "program")
	descUp         = desc("diagon_collector_up", "1 while the collector runs.", "collector")
	descRestarts   = desc("diagon_collector_restarts_total", "How often the collector was started again after a failure.", "collector")
	descSentBytes  = desc("diagon_sent_bytes_total", "Bytes sent to the server, as on the socket: protocol and resends included.")
	descSentSample = desc("diagon_sent_samples_total", "Samples sent to the server, resends included.")
	descConnected  = desc("diagon_uplink_connected", "1 while the agent is registered with its server.")
	descSpoolBytes = desc("diagon_spool_bytes", "Bytes that wait for the server.")
	descSpoolCount = desc("diagon_spool_batches", "Batches that wait for the server.")
)

// Describe sends nothing: the host's readings depend on the host, so the collector is an
// unchecked one in client_golang's words.
func (m metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m metrics) Collect(out chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	a := m.a
	gauge(descBuild, 1, a.cfg.Version)
	for t := range a.quality.samples {
		counter(descSamples, float64(a.quality.samples[t].Load()), profile.Type(t).String())
	}
	counter(descFrames, float64(a.quality.named.Load()), "true")
	counter(descFrames, float64(a.quality.unnamed.Load()), "false")
	counter(descStacks, float64(a.quality.rooted.Load()), "true")
	counter(descStacks, float64(a.quality.cutOff.Load()), "false")
	for _, l := range a.losses.Total() {
		counter(descLost, float64(l.Count), l.Place)
	}
	for _, s := range a.runner.States() {
		gauge(descUp, flag(s.Phase == collector.Running), s.Name)
		counter(descRestarts, float64(s.Restarts), s.Name)
	}
	use := a.cpu.Load().Kernel()
	gauge(descMapBytes, float64(use.MapBytes))
	for _, p := range use.Programs {
		counter(descRunSeconds, p.RunTime.Seconds(), p.Name)
		counter(descRuns, float64(p.Runs), p.Name)
	}
	if a.session != nil {
		st := a.session.Stats()
		counter(descSentBytes, float64(st.BytesSent))
		counter(descSentSample, float64(st.SamplesSent))
		gauge(descConnected, flag(st.Connected))
		gauge(descSpoolBytes, float64(st.Spool.Bytes))
		gauge(descSpoolCount, float64(st.Spool.Batches))
	}
	m.readings(out)
}

// readings answers the newest of the host's readings under their own names.
func (m metrics) readings(out chan<- prometheus.Metric) {
	help := make(map[string]string, len(host.Metrics))
	for _, d := range host.Metrics {
		help[d.Name] = d.Help
	}
	for _, r := range m.a.latest.list(time.Now()) {
		names, values := make([]string, len(r.Labels)), make([]string, len(r.Labels))
		for i, l := range r.Labels {
			names[i], values[i] = l.Name, l.Value
		}
		metric, err := prometheus.NewConstMetric(desc(r.Metric, help[r.Metric], names...), prometheus.GaugeValue, r.Value, values...)
		if err != nil {
			m.a.losses.Lost("readings", 1)
			continue
		}
		out <- metric
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
