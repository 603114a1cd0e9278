// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// An Artifact is one result of a capture: a file, which must not change while it
// is uploaded.
type Artifact struct {
	CaptureID   string
	Name        string // "cpu.pb.gz"
	ContentType string
	Path        string // where it is on this disk
}

// chunkBytes is what an upload holds in memory, however large the file.
const chunkBytes = 256 << 10

// UploadArtifact sends a file and returns nil once the server holds it whole, its
// hash checked. A cut upload goes on where it was cut. It tries until ctx is done,
// Config.UploadTimeout when ctx has no deadline; a refusal that repeating does not
// cure is returned at once.
func (s *Session) UploadArtifact(ctx context.Context, a Artifact) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.UploadTimeout)
		defer cancel()
	}
	if err := s.uploadArtifact(ctx, a); err != nil {
		return fmt.Errorf("uplink: upload %s of capture %s: %w", a.Name, a.CaptureID, err)
	}
	return nil
}

func (s *Session) uploadArtifact(ctx context.Context, a Artifact) error {
	f, err := os.Open(a.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	if err != nil {
		return err
	}
	begin := &diagonv1.ArtifactBegin{
		CaptureId: a.CaptureID, Node: s.id.Node, Name: a.Name,
		Size: uint64(size), Sha256: hash.Sum(nil), ContentType: a.ContentType,
	}

	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	wait := backoff{min: s.cfg.BackoffMin, max: s.cfg.BackoffMax}
	for {
		up, client, err := s.up.wait(ctx)
		if err != nil {
			return fmt.Errorf("no connection to the backend: %w", err)
		}
		moved, err := s.uploadOnce(ctx, up, client, begin, f)
		if err == nil {
			return nil
		}
		if isFinal(err) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		}
		if moved {
			wait.reset()
		}
		delay := wait.next(err)
		s.log.Warn("An upload was cut; it goes on.", "capture", a.CaptureID, "artifact", a.Name, "error", err, "retry_in", delay)
		if !sleep(ctx, delay) {
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		}
	}
}

// uploadOnce goes on with an upload over one stream; moved says that it sent something.
func (s *Session) uploadOnce(ctx, up context.Context, client diagonv1.DiagnosticsClient, begin *diagonv1.ArtifactBegin, f io.ReaderAt) (moved bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(up, func() { cancel(errors.New("the connection ended")) })()

	stream, err := client.UploadArtifact(ctx)
	if err != nil {
		return false, err
	}
	u := &upload{stream: stream, cancel: cancel, patience: s.cfg.AnswerTimeout}
	u.alive = time.AfterFunc(u.patience, func() { cancel(fmt.Errorf("%w (%v)", errSilent, u.patience)) })
	defer u.alive.Stop()
	err = u.run(begin, f)
	cancel(nil)
	if u.received != nil {
		<-u.received
	}
	return u.moved, cause(ctx, err)
}

// An upload is one UploadArtifact stream.
type upload struct {
	stream   grpc.BidiStreamingClient[diagonv1.UploadArtifactRequest, diagonv1.UploadArtifactResponse]
	cancel   context.CancelCauseFunc
	patience time.Duration
	alive    *time.Timer // ends the stream when nothing moves for that long
	moved    bool
	complete atomic.Bool
	received chan struct{} // closed when the receiver has ended; nil before it starts
	failed   error         // why it ended; read after received is closed
}

func (u *upload) run(begin *diagonv1.ArtifactBegin, f io.ReaderAt) error {
	if err := u.send(&diagonv1.UploadArtifactRequest{Message: &diagonv1.UploadArtifactRequest_Begin{Begin: begin}}); err != nil {
		return err
	}
	first, err := u.stream.Recv()
	if err != nil {
		return ended(err)
	}
	if first.GetComplete() {
		return nil // the answer to an earlier commit was cut off
	}
	offset := first.GetCommittedOffset()
	if offset > begin.GetSize() {
		return status.Errorf(codes.OutOfRange, "the backend holds %d bytes of a file of %d", offset, begin.GetSize())
	}

	u.received = make(chan struct{})
	go u.receive()
	buf := make([]byte, chunkBytes)
	for offset < begin.GetSize() && !u.complete.Load() {
		n, err := f.ReadAt(buf[:min(chunkBytes, begin.GetSize()-offset)], int64(offset))
		if n == 0 {
			return status.Errorf(codes.FailedPrecondition, "the file became shorter: read at %d: %v", offset, err)
		}
		chunk := &diagonv1.ArtifactChunk{Offset: offset, Data: buf[:n], Crc32C: crc32.Checksum(buf[:n], castagnoli)}
		if err := u.send(&diagonv1.UploadArtifactRequest{Message: &diagonv1.UploadArtifactRequest_Chunk{Chunk: chunk}}); err != nil {
			return err
		}
		u.moved = true
		offset += uint64(n)
	}
	if err := u.send(&diagonv1.UploadArtifactRequest{Message: &diagonv1.UploadArtifactRequest_Commit{Commit: &diagonv1.ArtifactCommit{}}}); err != nil {
		return err
	}
	<-u.received // the stream has a deadline of its own
	if u.complete.Load() {
		return nil
	}
	return u.failed
}

// send writes one message. When the stream is over the reason comes by receiving.
func (u *upload) send(m *diagonv1.UploadArtifactRequest) error {
	err := u.stream.Send(m)
	u.alive.Reset(u.patience)
	if !errors.Is(err, io.EOF) {
		return err
	}
	if u.received == nil {
		_, err := u.stream.Recv()
		return ended(err)
	}
	<-u.received
	if u.complete.Load() {
		return nil
	}
	return u.failed
}

// receive takes answers until the upload is complete or the stream has ended.
func (u *upload) receive() {
	defer close(u.received)
	for {
		r, err := u.stream.Recv()
		if err != nil {
			u.failed = ended(err)
			return
		}
		u.alive.Reset(u.patience)
		if r.GetComplete() {
			u.complete.Store(true)
			return
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the backend closed the stream before the upload was complete")
	}
	return err
}
