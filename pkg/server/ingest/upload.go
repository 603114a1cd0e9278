// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/artifacts"
	"diagon.dev/diagon/pkg/server/captures"
	"diagon.dev/diagon/pkg/server/store"
)

// UploadArtifact takes one result of a capture. A cut upload goes on where it
// stopped; one that is whole is answered as such, however often it is begun.
func (s *Server) UploadArtifact(stream grpc.BidiStreamingServer[diagonv1.UploadArtifactRequest, diagonv1.UploadArtifactResponse]) error {
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		return retry(codes.ResourceExhausted, retrySoon, "%d artifacts are on their way, and no more are taken now (ingest-uploads)", s.cfg.Uploads)
	}
	in := receive(s, stream, 0)
	m, err := s.next(in, nil)
	if err != nil {
		return err
	}
	begin := m.GetBegin()
	if begin == nil {
		return status.Errorf(codes.InvalidArgument, "the first message must be a begin, not %T", m.GetMessage())
	}
	up, err := s.begin(stream.Context(), begin)
	if err != nil {
		return uploadStatus(err)
	}
	defer up.Close()
	if err := stream.Send(&diagonv1.UploadArtifactResponse{CommittedOffset: uint64(up.Offset())}); err != nil {
		return err
	}
	return s.carry(stream, in, begin, up)
}

func (s *Server) begin(ctx context.Context, b *diagonv1.ArtifactBegin) (*artifacts.Upload, error) {
	if err := validNode(b.GetNode()); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "begin: node: %v", err)
	}
	if err := s.allowed(ctx, b.GetNode()); err != nil {
		return nil, err
	}
	if err := s.parts.Captures.Awaits(b.GetCaptureId(), b.GetNode(), b.GetName()); err != nil {
		return nil, err
	}
	if b.GetSize() > 1<<62 {
		return nil, fmt.Errorf("%w: a size of %d bytes", artifacts.ErrInvalid, b.GetSize())
	}
	return s.parts.Artifacts.Begin(ctx, artifacts.ID{
		Capture: b.GetCaptureId(), Name: captures.ArtifactName(b.GetNode(), b.GetName()),
		Size: int64(b.GetSize()), SHA256: b.GetSha256(), ContentType: b.GetContentType(),
	})
}

// carry takes chunks up to the commit.
func (s *Server) carry(stream grpc.BidiStreamingServer[diagonv1.UploadArtifactRequest, diagonv1.UploadArtifactResponse],
	in *received[diagonv1.UploadArtifactRequest], begin *diagonv1.ArtifactBegin, up *artifacts.Upload) error {
	for {
		m, err := s.next(in, up.Displaced())
		if err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *diagonv1.UploadArtifactRequest_Chunk:
			c := m.Chunk
			if c.GetOffset() > 1<<62 {
				return status.Errorf(codes.InvalidArgument, "a chunk at %d", c.GetOffset())
			}
			if err := up.Write(int64(c.GetOffset()), c.GetData(), c.GetCrc32C()); err != nil {
				return uploadStatus(err)
			}
			s.metrics.artifactBytes.Add(float64(len(c.GetData())))
		case *diagonv1.UploadArtifactRequest_Commit:
			if err := s.commitArtifact(stream.Context(), begin, up); err != nil {
				return uploadStatus(err)
			}
			return stream.Send(&diagonv1.UploadArtifactResponse{CommittedOffset: begin.GetSize(), Complete: true})
		default:
			return status.Errorf(codes.InvalidArgument, "%T in the middle of an upload", m)
		}
	}
}

// next waits for a message, no longer than Config.Idle.
func (s *Server) next(in *received[diagonv1.UploadArtifactRequest], displaced <-chan struct{}) (*diagonv1.UploadArtifactRequest, error) {
	idle := time.NewTimer(s.cfg.Idle)
	defer idle.Stop()
	select {
	case m, ok := <-in.messages:
		if !ok {
			return nil, status.Errorf(codes.Canceled, "the upload ended before its commit: %v", in.err)
		}
		return m, nil
	case <-displaced:
		return nil, status.Error(codes.Aborted, "a newer upload of the same artifact goes on")
	case <-idle.C:
		return nil, retry(codes.DeadlineExceeded, retrySoon, "nothing came for %v", s.cfg.Idle)
	case <-s.closing:
		return nil, errClosing
	}
}

// commitArtifact makes the file durable, its samples too where it has some, and only
// then tells the capture, so that who sees it succeed can look at it.
func (s *Server) commitArtifact(ctx context.Context, b *diagonv1.ArtifactBegin, up *artifacts.Upload) error {
	info, err := up.Commit(ctx)
	if err != nil {
		return err
	}
	name := captures.ArtifactName(b.GetNode(), b.GetName())
	samples := "none"
	if s.parts.Captures.Kind(b.GetCaptureId()) == "cpu" {
		if samples, err = s.index(ctx, b, name, info.Size); err != nil {
			return err
		}
	}
	s.metrics.artifacts.WithLabelValues(samples).Inc()
	s.log.Info("artifact is stored", "capture", b.GetCaptureId(), "name", name, "bytes", info.Size, "samples", samples)
	return s.parts.Captures.Landed(ctx, b.GetCaptureId(), b.GetNode(), captures.Artifact{
		Name: name, Size: info.Size, SHA256: info.SHA256, ContentType: info.ContentType,
	})
}

// index puts a profile's samples into the store under the capture's id. A file that is no profile
// stays a file; a store that is in trouble is an error, and the agent commits again.
func (s *Server) index(ctx context.Context, b *diagonv1.ArtifactBegin, name string, size int64) (result string, err error) {
	if size > s.cfg.Profile.Bytes {
		return "too_large", nil
	}
	raw, err := s.readArtifact(ctx, b.GetCaptureId(), name)
	if err != nil {
		return "", err
	}
	select {
	case s.decoders <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	// The name is the batch's number, so that a second commit of the same file is the same batch.
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(b.GetName()))
	batch := store.Batch{
		Node: b.GetNode(), BootID: "capture " + b.GetCaptureId(), Sequence: uint64(sum.Sum32()) + 1, Capture: b.GetCaptureId(),
	}
	meta, err := s.profile(&batch, raw)
	<-s.decoders
	if err != nil {
		s.log.Warn("artifact is no profile, and has no flame graph", "capture", b.GetCaptureId(), "name", name, "err", err)
		return "unreadable", nil
	}
	batch.AgentVersion = meta.AgentVersion

	item := &pending{sequence: batch.Sequence, batch: batch, done: make(chan struct{})}
	s.committer.put(item)
	select {
	case <-item.done:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if item.err != nil {
		return "", s.storeStatus(item.err)
	}
	return "stored", nil
}

func (s *Server) readArtifact(ctx context.Context, capture, name string) ([]byte, error) {
	r, _, err := s.parts.Artifacts.Read(ctx, capture, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, s.cfg.Profile.Bytes))
}

// uploadStatus says whether an agent should come back.
func uploadStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, artifacts.ErrInvalid):
		return status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, artifacts.ErrCorrupt):
		return retry(codes.DataLoss, retrySoon, "%v", err)
	case errors.Is(err, artifacts.ErrFull):
		return retry(codes.ResourceExhausted, retryFull, "%v", err)
	case errors.Is(err, captures.ErrNotFound):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, captures.ErrNotWanted):
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return retry(codes.Unavailable, retrySoon, "%v", err)
}
