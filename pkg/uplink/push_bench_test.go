// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"crypto/rand"
	"testing"
	"time"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/uplink/uplinktest"
)

// BenchmarkPush sends batches of 20 KiB from PushBatch to the acknowledgement. It
// tells what a batch costs on the wire beyond its profile.
func BenchmarkPush(b *testing.B) {
	const size = 20 << 10
	state := uplinktest.NewState()
	server := uplinktest.Start(b, "127.0.0.1:0", state, uplinktest.Behaviour{Heartbeat: time.Hour})
	cfg := quick(b, server.Address)
	cfg.HeartbeatMax = time.Hour
	a := start(b, cfg)
	eventually(b, "the agent is connected", func() bool { return a.Stats().Connected })
	profile := make([]byte, size)
	_, _ = rand.Read(profile)
	before := a.Stats().BytesSent
	b.SetBytes(size)
	for b.Loop() {
		if err := a.PushBatch(&diagonv1.Batch{ProfileZstd: profile, Samples: 1000}); err != nil {
			b.Fatal(err)
		}
	}
	flush(b, a)
	b.ReportMetric(float64(a.Stats().BytesSent-before)/float64(b.N)-size, "overhead-B/batch")
}
