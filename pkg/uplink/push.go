// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/uplink/spool"
)

// push empties the spool into PushProfiles streams for as long as the connection
// stands. A stream that fails by itself (a full store) is opened anew after a
// wait; orders go on meanwhile.
func (s *Session) push(ctx context.Context, client diagonv1.DiagnosticsClient) error {
	wait := backoff{min: s.cfg.BackoffMin, max: s.cfg.BackoffMax}
	single := 0 // so many batches are sent one at a time, to find the one that the server refuses
	for {
		boot, ok := s.oldestBoot(ctx)
		if !ok {
			return context.Cause(ctx)
		}
		p, err := s.pushBoot(ctx, client, boot, single)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		single = p.single
		if err == nil {
			continue // all of an older boot's batches are gone
		}
		if p.progress {
			wait.reset()
		}
		if status.Code(err) == codes.InvalidArgument {
			single = p.refused(err)
			wait.reset()
		}
		delay := wait.next(err)
		s.counts.failed(err)
		s.log.Warn("Pushing profiles ended.", "error", err, "retry_in", delay)
		if !sleep(ctx, delay) {
			return context.Cause(ctx)
		}
	}
}

// oldestBoot waits for a batch and answers which boot it belongs to.
func (s *Session) oldestBoot(ctx context.Context) (string, bool) {
	for {
		if b, _, ok := s.spool.Read(0); ok {
			return b.BootID, true
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-s.spool.Ready():
		}
	}
}

// A pusher is one PushProfiles stream. It carries batches of one node and boot only,
// since a durable sequence says nothing of which it counts.
type pusher struct {
	s      *Session
	bootID string
	node   string // of the first batch sent
	stream grpc.BidiStreamingClient[diagonv1.PushProfilesRequest, diagonv1.PushProfilesResponse]
	wake   chan struct{} // holds a token after an answer

	mu       sync.Mutex
	credit   uint64 // bytes that may be in flight; nothing before the first answer
	flight   []sent // not acknowledged, oldest first
	bytes    uint64 // in flight
	heard    time.Time
	single   int
	progress bool
}

type sent struct {
	sequence uint64
	samples  uint64
	bytes    uint64
	rejected bool
	unsent   bool // this agent cannot read it: no answer will come
}

// pushBoot sends the batches of one boot, oldest first. It returns nil when none of
// them is left, or none under the same node's name, and newer ones wait.
func (s *Session) pushBoot(ctx context.Context, client diagonv1.DiagnosticsClient, bootID string, single int) (*pusher, error) {
	p := &pusher{s: s, bootID: bootID, wake: make(chan struct{}, 1), heard: time.Now(), single: single}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := client.PushProfiles(ctx)
	if err != nil {
		return p, fmt.Errorf("push: %w", err)
	}
	p.stream = stream

	received := make(chan error, 1)
	go func() { received <- p.receive() }()
	err = p.send(ctx, cancel, received)
	if err == nil {
		return p, nil
	}
	return p, fmt.Errorf("push: %w", cause(ctx, err))
}

// send fills the credit window until the stream ends.
func (p *pusher) send(ctx context.Context, cancel context.CancelCauseFunc, received chan error) error {
	defer func() { // whatever ended the sending, the receiver ends before this returns
		cancel(nil)
		if received != nil {
			<-received
		}
	}()
	silence := time.NewTicker(p.s.cfg.AnswerTimeout / 4)
	defer silence.Stop()
	cursor := spool.Position(0)
	for {
		batch, next, ok := p.s.spool.Read(cursor)
		switch {
		case ok && batch.BootID != p.bootID && p.idle():
			return nil
		case ok && batch.BootID == p.bootID && p.fits(len(batch.Data)):
			b := new(diagonv1.Batch)
			broken := proto.Unmarshal(batch.Data, b)
			if broken == nil && p.isAnotherNodes(b) {
				if p.idle() {
					return nil
				}
				break
			}
			if err := p.write(batch, b, broken, cancel); err != nil {
				if errors.Is(err, io.EOF) {
					err, received = <-received, nil
				}
				return err
			}
			cursor = next
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-received:
			received = nil
			return err
		case <-p.wake:
		case <-p.s.spool.Ready():
		case <-silence.C:
			if p.silent() {
				return fmt.Errorf("%w (%v)", errSilent, p.s.cfg.AnswerTimeout)
			}
		}
	}
}

// isAnotherNodes reports whether a batch was made under another name than those before
// it: by an agent that was started with another one since. Caller is the sender.
func (p *pusher) isAnotherNodes(b *diagonv1.Batch) bool {
	if p.node == "" {
		p.node = b.GetNode()
	}
	return b.GetNode() != p.node
}

// write sends a batch and notes it as in flight.
func (p *pusher) write(spooled spool.Batch, b *diagonv1.Batch, broken error, cancel context.CancelCauseFunc) error {
	p.depart(sent{
		sequence: spooled.Sequence, samples: spooled.Samples, bytes: uint64(len(spooled.Data)),
		rejected: broken != nil, unsent: broken != nil,
	})
	if broken != nil {
		p.s.log.Error("A batch in the spool is none.", "sequence", spooled.Sequence, "samples", spooled.Samples, "error", broken)
		return nil
	}
	defer within(p.s.cfg.AnswerTimeout, cancel)()
	p.s.counts.sent(spooled.Samples)
	return p.stream.Send(&diagonv1.PushProfilesRequest{Batch: b})
}

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

// receive applies the server's answers until the stream ends.
func (p *pusher) receive() error {
	for {
		r, err := p.stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the backend closed the stream")
		}
		if err != nil {
			return err
		}
		p.apply(r)
		newest(p.wake, struct{}{})
	}
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
		p.s.lost("rejected", f.samples)
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
