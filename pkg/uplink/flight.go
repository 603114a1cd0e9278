// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"time"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// depart notes a batch as in flight.
func (p *pusher) depart(f sent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flight) == 0 {
		p.heard = time.Now() // the silence that counts begins now
	}
	p.flight = append(p.flight, f)
	p.bytes += f.bytes
	p.settleUpTo(0)
}

// apply takes one answer. An acknowledgement counts for what this stream has sent
// and for nothing else, so that a server which knows of another agent by this
// name cannot make batches vanish that were never sent.
func (p *pusher) apply(r *diagonv1.PushProfilesResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = time.Now()
	p.credit = r.GetCreditBytes()
	for _, rejected := range r.GetRejected() {
		for i := range p.flight {
			if f := &p.flight[i]; f.sequence == rejected.GetSequence() && !f.rejected {
				f.rejected = true
				p.s.log.Error("The backend rejected a batch for good.", "sequence", f.sequence, "samples", f.samples, "reason", rejected.GetReason())
			}
		}
	}
	p.settleUpTo(r.GetDurableSequence())
}

// settleUpTo settles what is answered at the front; p.mu is held.
func (p *pusher) settleUpTo(durable uint64) {
	for len(p.flight) > 0 && (p.flight[0].unsent || p.flight[0].sequence <= durable) {
		p.settle()
	}
}

// settle takes the oldest batch in flight off the spool; p.mu is held.
func (p *pusher) settle() {
	f := p.flight[0]
	p.flight = p.flight[1:]
	p.bytes -= f.bytes
	p.single = max(0, p.single-1)
	p.progress = true
	p.s.spool.Ack(p.bootID, f.sequence)
	if f.rejected {
		p.s.counts.rejected(f.samples)
		p.s.lost("rejected", max(f.samples, 1))
		return
	}
	p.s.counts.acked(f.samples)
}

// refused handles INVALID_ARGUMENT, which ends a stream without naming the batch that
// caused it. One in flight alone is the culprit and is dropped; of several, each
// will be sent alone. It answers how many.
func (p *pusher) refused(err error) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flight) != 1 {
		return len(p.flight)
	}
	p.flight[0].rejected = true
	p.s.log.Error("The backend rejected a batch for good.", "sequence", p.flight[0].sequence, "samples", p.flight[0].samples, "reason", err)
	p.settle()
	return p.single
}

// fits reports whether a batch of n bytes may be sent now. One that is larger than
// the whole window goes alone, else it would never go.
func (p *pusher) fits(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.credit == 0 || p.single > 0 && len(p.flight) > 0 {
		return false
	}
	return len(p.flight) == 0 || p.bytes+uint64(n) <= p.credit
}

func (p *pusher) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.flight) == 0
}

// silent reports whether the server owes an answer for too long.
func (p *pusher) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	owing := len(p.flight) > 0 || p.credit == 0
	return owing && time.Since(p.heard) > p.s.cfg.AnswerTimeout
}
