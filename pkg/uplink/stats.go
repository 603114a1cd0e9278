// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"sync"
	"sync/atomic"
	"time"

	"diagon.dev/diagon/pkg/uplink/spool"
)

// Stats is how a session stands; numbers are since it was made.
type Stats struct {
	Connected bool      // registered, and not lost since
	Since     time.Time // of the present connection; zero when not connected
	Server    string    // its name
	Connects  uint64    // registrations that succeeded
	LastError error     // why the last connection ended or could not be made

	BytesSent        uint64 // on the socket: TLS, HTTP/2 and resends included
	BatchesSent      uint64 // resends included
	SamplesSent      uint64
	BatchesAcked     uint64 // durable on the server, as far as it said so to this session
	SamplesAcked     uint64
	BatchesRejected  uint64 // refused for good
	SamplesRejected  uint64
	BatchesUnspooled uint64 // no disk would take them
	SamplesUnspooled uint64

	Spool spool.Stats
}

// Stats answers how the session stands.
func (s *Session) Stats() Stats {
	c := &s.counts
	st := Stats{
		BytesSent:        c.bytesSent.Load(),
		BatchesSent:      c.batchesSent.Load(),
		SamplesSent:      c.samplesSent.Load(),
		BatchesAcked:     c.batchesAcked.Load(),
		SamplesAcked:     c.samplesAcked.Load(),
		BatchesRejected:  c.batchesRejected.Load(),
		SamplesRejected:  c.samplesRejected.Load(),
		BatchesUnspooled: c.batchesUnspooled.Load(),
		SamplesUnspooled: c.samplesUnspooled.Load(),
		Spool:            s.spool.Stats(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.Connected, st.Since, st.Server = !c.since.IsZero(), c.since, c.server
	st.Connects, st.LastError = c.connects, c.lastError
	return st
}

// counts is what a session keeps books of.
type counts struct {
	bytesSent                          atomic.Uint64
	batchesSent, samplesSent           atomic.Uint64
	batchesAcked, samplesAcked         atomic.Uint64
	batchesRejected, samplesRejected   atomic.Uint64
	batchesUnspooled, samplesUnspooled atomic.Uint64

	mu         sync.Mutex
	since      time.Time // zero while not connected
	registered time.Time // the last time
	server     string
	connects   uint64
	lastError  error
}

func (c *counts) connected(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.registered = c.since
	c.server = server
	c.connects++
}

func (c *counts) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastError = err
}

func (c *counts) disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.server = time.Time{}, ""
}

func (c *counts) registeredSince(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registered.After(t)
}

func (c *counts) unspooled(samples uint64) {
	c.batchesUnspooled.Add(1)
	c.samplesUnspooled.Add(samples)
}

func (c *counts) sent(samples uint64) {
	c.batchesSent.Add(1)
	c.samplesSent.Add(samples)
}

func (c *counts) acked(samples uint64) {
	c.batchesAcked.Add(1)
	c.samplesAcked.Add(samples)
}

func (c *counts) rejected(samples uint64) {
	c.batchesRejected.Add(1)
	c.samplesRejected.Add(samples)
}
