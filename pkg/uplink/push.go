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
	"google.golang.org/grpc/encoding/gzip"
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
		// When it was the whole connection that ended, that is about to be said, once.
		grace := min(delay, 100*time.Millisecond)
		if !sleep(ctx, grace) {
			return context.Cause(ctx)
		}
		s.counts.failed(err)
		s.log.Warn("Pushing profiles ended.", "error", err, "retry_in", delay)
		if !sleep(ctx, delay-grace) {
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
	// The profile is packed already, but readings are half of a batch on a small node.
	stream, err := client.PushProfiles(ctx, grpc.UseCompressor(gzip.Name))
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
