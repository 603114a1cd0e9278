// SPDX-License-Identifier: Apache-2.0

package ingest

import "github.com/prometheus/client_golang/prometheus"

// metrics counts what comes in and what does not.
type metrics struct {
	batches         *prometheus.CounterVec // by result
	rejected        *prometheus.CounterVec // by reason
	samples         prometheus.Counter
	bytes           prometheus.Counter
	heartbeats      prometheus.Counter
	impostors       prometheus.Counter
	unknown         prometheus.Counter
	labelsIgnored   prometheus.Counter
	readingsDropped prometheus.Counter
	artifactBytes   prometheus.Counter
	artifacts       *prometheus.CounterVec // by result
	appendSeconds   prometheus.Histogram
	groupSize       prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, s *Server) *metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	vec := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	gauge := func(name, help, label, value string, read func() float64) {
		opts := prometheus.GaugeOpts{Name: name, Help: help}
		if label != "" {
			opts.ConstLabels = prometheus.Labels{label: value}
		}
		reg.MustRegister(prometheus.NewGaugeFunc(opts, read))
	}
	streams := "diagon_server_streams"
	gauge(streams, "Streams held, by kind.", "stream", "connect", func() float64 { return float64(s.connects.Load()) })
	gauge(streams, "Streams held, by kind.", "stream", "push", func() float64 { return float64(s.pushes.Load()) })
	gauge(streams, "Streams held, by kind.", "stream", "upload", func() float64 { return float64(len(s.uploads)) })
	gauge("diagon_server_store_full", "1 while the store refuses profiles for want of room.", "", "", func() float64 {
		if s.Full() != nil {
			return 1
		}
		return 0
	})
	return &metrics{
		batches:         vec("diagon_server_batches_total", "Batches that reached the store, by what became of them.", "result"),
		rejected:        vec("diagon_server_batches_rejected_total", "Batches that will never be accepted, by what is wrong with them.", "reason"),
		samples:         counter("diagon_server_samples_total", "Samples stored, before they were added up on the node."),
		bytes:           counter("diagon_server_batch_bytes_total", "Bytes of batches received."),
		heartbeats:      counter("diagon_server_heartbeats_total", "Heartbeats received."),
		impostors:       counter("diagon_server_identity_refused_total", "Requests under a node name that the certificate does not allow."),
		unknown:         counter("diagon_server_messages_unknown_total", "Messages of a kind that this version does not know."),
		labelsIgnored:   counter("diagon_server_labels_ignored_total", "Sample labels that this version does not know."),
		readingsDropped: counter("diagon_server_readings_dropped_total", "Readings dropped because they are no number."),
		artifactBytes:   counter("diagon_server_artifact_bytes_total", "Bytes of artifacts received."),
		artifacts:       vec("diagon_server_artifacts_total", "Artifacts that were uploaded whole, by what became of their samples.", "samples"),
		appendSeconds:   histogram("diagon_server_append_seconds", "Time of one commit to the store.", prometheus.ExponentialBuckets(0.001, 2, 15)),
		groupSize:       histogram("diagon_server_append_batches", "Batches in one commit to the store.", prometheus.ExponentialBuckets(1, 2, 9)),
	}
}
