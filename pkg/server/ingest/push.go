// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

const (
	ackQueue  = 256       // batches of one stream between the wire and their acknowledgement
	minCredit = 256 << 10 // what each agent may send, however many there are
)

// A push is one PushProfiles stream: batches of one node and one boot, in order.
//
// One loop only receives, and puts each batch into two queues: the committer's,
// which all streams share, and the stream's own, from which the handler answers in the same order.
type push struct {
	s      *Server
	node   string // of the first batch; the others must be of the same
	boot   string
	last   uint64
	credit *semaphore.Weighted
	acks   chan *pending
}

// PushProfiles takes batches and acknowledges them when the store has them.
func (s *Server) PushProfiles(stream grpc.BidiStreamingServer[diagonv1.PushProfilesRequest, diagonv1.PushProfilesResponse]) error {
	if n := s.pushes.Add(1); n > int64(s.cfg.Agents) {
		s.pushes.Add(-1)
		return retry(codes.ResourceExhausted, retryFull, "this server holds %d streams of profiles, and takes no more (ingest-agents)", s.cfg.Agents)
	}
	defer s.pushes.Add(-1)
	if err := s.committer.refuses(); err != nil {
		return retry(codes.ResourceExhausted, retryFull, "%v", err)
	}
	p := &push{s: s, credit: semaphore.NewWeighted(s.cfg.Credit), acks: make(chan *pending, ackQueue)}
	if err := stream.Send(&diagonv1.PushProfilesResponse{CreditBytes: s.grant()}); err != nil {
		return err
	}
	// What is still on its way when the handler returns goes into the store or not; nobody waits for it.
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	received := make(chan error, 1)
	s.loops.Go(func() {
		err := p.receive(ctx, stream)
		close(p.acks)
		received <- err
	})
	return p.answer(ctx, stream, received)
}

// grant is the credit of one stream: its share of what all may have in flight.
func (s *Server) grant() uint64 {
	share := s.cfg.Inflight / max(1, s.pushes.Load())
	return uint64(min(s.cfg.Credit, max(minCredit, share)))
}

// receive is the loop that only receives. It ends with the stream or with ctx.
func (p *push) receive(ctx context.Context, stream grpc.BidiStreamingServer[diagonv1.PushProfilesRequest, diagonv1.PushProfilesResponse]) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		item, err := p.take(ctx, m.GetBatch())
		if err != nil {
			return err
		}
		select {
		case p.acks <- item:
		case <-ctx.Done():
			p.s.committer.drop(item)
			return context.Cause(ctx)
		}
		// From here on the committer settles the item, in whatever way, within its deadlines.
		p.s.committer.put(item)
	}
}

// take turns a message into an item of the queues. What is wrong with the batch makes an item too,
// so that its rejection is told in order; what is wrong with the stream ends it.
func (p *push) take(ctx context.Context, b *diagonv1.Batch) (*pending, error) {
	if b == nil {
		return nil, status.Error(codes.InvalidArgument, "a message without a batch")
	}
	if err := p.sameStream(ctx, b); err != nil {
		return nil, err
	}
	size := int64(proto.Size(b))
	p.s.metrics.bytes.Add(float64(size))
	item := &pending{sequence: b.GetSequence(), samples: b.GetSamples(), done: make(chan struct{})}

	// An agent that sends more than its credit waits here, and not in our memory.
	window := min(size, p.s.cfg.Credit)
	if err := p.credit.Acquire(ctx, window); err != nil {
		return nil, err
	}
	batch, held, err := p.s.decode(ctx, b)
	item.release = func() {
		p.s.inflight.Release(held)
		p.credit.Release(window)
	}
	var refused *refusal
	switch {
	case err == nil:
		item.batch = batch
	case errors.As(err, &refused):
		p.s.metrics.rejected.WithLabelValues(refused.word).Inc()
		p.s.log.Warn("batch is rejected", "node", p.node, "boot_id", p.boot, "sequence", b.GetSequence(), "reason", refused)
		item.refused = refused.Error()
	default:
		item.release()
		return nil, err
	}
	return item, nil
}

// sameStream holds a stream to one node and boot, and to rising sequences: an
// acknowledged sequence vouches for all before it.
func (p *push) sameStream(ctx context.Context, b *diagonv1.Batch) error {
	if p.node == "" {
		if err := validNode(b.GetNode()); err != nil {
			return status.Errorf(codes.InvalidArgument, "batch: node: %v", err)
		}
		if err := validID(b.GetBootId()); err != nil {
			return status.Errorf(codes.InvalidArgument, "batch: boot_id: %v", err)
		}
		if err := p.s.allowed(ctx, b.GetNode()); err != nil {
			return err
		}
		p.node, p.boot = b.GetNode(), b.GetBootId()
	}
	if b.GetNode() != p.node || b.GetBootId() != p.boot {
		return status.Errorf(codes.InvalidArgument, "a batch of node %q, boot %q, on a stream of %q, %q", b.GetNode(), b.GetBootId(), p.node, p.boot)
	}
	if b.GetSequence() <= p.last {
		return status.Errorf(codes.InvalidArgument, "sequence %d after %d on one stream", b.GetSequence(), p.last)
	}
	p.last = b.GetSequence()
	return nil
}

// answer is the loop that only sends: in the order of receipt, as many at once as are settled.
func (p *push) answer(ctx context.Context, stream grpc.BidiStreamingServer[diagonv1.PushProfilesRequest, diagonv1.PushProfilesResponse], received <-chan error) error {
	var item *pending // taken from acks, not settled yet
	for {
		if item == nil {
			var ok bool
			select {
			case item, ok = <-p.acks:
				if !ok {
					return ended(<-received)
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-p.s.closing:
				return errClosing
			}
		}
		select {
		case <-item.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r := &diagonv1.PushProfilesResponse{CreditBytes: p.s.grant()}
		next, failed := p.gather(r, item)
		if r.DurableSequence > 0 {
			if err := stream.Send(r); err != nil {
				return err
			}
		}
		if failed != nil {
			return failed
		}
		item = next
	}
}

// gather puts item, which is settled, and those behind it that are settled too into the
// answer. It returns the first that is not.
func (p *push) gather(r *diagonv1.PushProfilesResponse, item *pending) (next *pending, failed error) {
	for {
		if err := p.add(r, item); err != nil {
			return nil, err
		}
		var ok bool
		select {
		case item, ok = <-p.acks:
			if !ok {
				return nil, nil // answer meets the closed channel again
			}
		default:
			return nil, nil
		}
		select {
		case <-item.done:
		default:
			return item, nil
		}
	}
}

// add puts a settled item into the answer, or returns the stream's end when the
// store did not take it.
func (p *push) add(r *diagonv1.PushProfilesResponse, item *pending) error {
	if item.err != nil {
		return p.s.storeStatus(item.err)
	}
	if item.refused != "" {
		r.Rejected = append(r.Rejected, &diagonv1.RejectedBatch{Sequence: item.sequence, Reason: item.refused})
	}
	r.DurableSequence = item.sequence
	return nil
}

// storeStatus is what an agent is told of the store's trouble.
func (s *Server) storeStatus(err error) error {
	if full := s.committer.full(); full != nil {
		return retry(codes.ResourceExhausted, retryFull, "%v", full)
	}
	return retry(codes.Unavailable, retrySoon, "%s", fmt.Sprintf("store: %v", err))
}
