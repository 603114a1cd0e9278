// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"diagon.dev/diagon/pkg/server/captures"
)

// register adds what is read at the moment somebody asks.
func (s *Server) register() {
	s.metrics.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "diagon_server_store_bytes", Help: "Bytes of the store on disk at the last retention run.",
		}, func() float64 { return float64(s.storeBytes.Load()) }),
		&fleet{s},
	)
}

// fleet counts nodes and captures by state.
type fleet struct{ s *Server }

var (
	nodesDesc    = prometheus.NewDesc("diagon_server_nodes", "Nodes known, by whether an agent is connected.", []string{"connected"}, nil)
	capturesDesc = prometheus.NewDesc("diagon_server_captures", "Captures kept, by state.", []string{"state"}, nil)
)

// Describe implements prometheus.Collector.
func (f *fleet) Describe(ch chan<- *prometheus.Desc) {
	ch <- nodesDesc
	ch <- capturesDesc
}

// Collect implements prometheus.Collector.
func (f *fleet) Collect(ch chan<- prometheus.Metric) {
	connected, away := 0, 0
	for _, n := range f.s.registry.Nodes() {
		if n.Connected {
			connected++
		} else {
			away++
		}
	}
	ch <- prometheus.MustNewConstMetric(nodesDesc, prometheus.GaugeValue, float64(connected), "true")
	ch <- prometheus.MustNewConstMetric(nodesDesc, prometheus.GaugeValue, float64(away), "false")

	counts := map[string]int{}
	for _, c := range f.s.captures.List(0) {
		counts[c.State]++
	}
	for _, state := range captures.States() {
		ch <- prometheus.MustNewConstMetric(capturesDesc, prometheus.GaugeValue, float64(counts[state]), state)
	}
}
