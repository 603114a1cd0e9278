// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/uplink/uplinktest"
)

// artifact writes a file of n random bytes.
func artifact(t *testing.T, n int) (Artifact, []byte) {
	t.Helper()
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	path := filepath.Join(t.TempDir(), "cpu.pb.gz")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return Artifact{CaptureID: "c1", Name: "cpu.pb.gz", ContentType: "application/gzip", Path: path}, data
}

func TestUpload(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bytes  int
		chunks int
	}{
		{"an empty file", 0, 0},
		{"a file of less than a chunk", 1000, 1},
		{"a file of whole chunks", 2 * chunkBytes, 2},
		{"a file that ends within a chunk", 3*chunkBytes + 1, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := uplinktest.NewState()
			server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
			a := start(t, quick(t, server.Address))
			file, data := artifact(t, tt.bytes)
			if err := a.UploadArtifact(t.Context(), file); err != nil {
				t.Fatal(err)
			}
			got, _ := state.Artifact("c1", "cpu.pb.gz")
			if !got.Complete || !bytes.Equal(got.Data, data) || got.Chunks != tt.chunks {
				t.Errorf("complete %v, %d bytes in %d chunks; want %d in %d", got.Complete, len(got.Data), got.Chunks, len(data), tt.chunks)
			}
			if b := got.Begin; b.GetNode() != "n1" || b.GetContentType() != "application/gzip" {
				t.Errorf("begin = %v", b)
			}
		})
	}
}

func TestACutUploadGoesOnWhereItWasCut(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	a := start(t, quick(t, proxy.Address))
	connected(t, a)
	file, data := artifact(t, 40*chunkBytes)
	before := proxy.Passed()
	proxy.CutAfter(int64(len(data)) / 2)
	if err := a.UploadArtifact(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	got, _ := state.Artifact("c1", "cpu.pb.gz")
	if !got.Complete || !bytes.Equal(got.Data, data) || got.Begins != 2 {
		t.Errorf("complete %v, %d bytes over %d streams; want %d over 2", got.Complete, len(got.Data), got.Begins, len(data))
	}
	if up := proxy.Passed() - before; up > int64(len(data))*3/2 {
		t.Errorf("%d bytes went up for a file of %d: the first half was sent again", up, len(data))
	}
}

func TestUploadsSurviveAServerThatIsKilledTimeAndAgain(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	a := start(t, quick(t, proxy.Address))
	file, data := artifact(t, 20*chunkBytes)
	proxy.CutAfter(3 * chunkBytes)
	done := make(chan error, 1)
	go func() { done <- a.UploadArtifact(t.Context(), file) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := state.Artifact("c1", "cpu.pb.gz"); !bytes.Equal(got.Data, data) {
				t.Errorf("%d bytes arrived, want %d and the same", len(got.Data), len(data))
			}
			return
		case <-time.After(20 * time.Millisecond):
			proxy.CutAfter(3 * chunkBytes)
		}
	}
}

func TestAnUploadThatIsRefusedIsNotTriedAgain(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{Begin: func(*diagonv1.ArtifactBegin) error {
		return status.Error(codes.InvalidArgument, "no such capture")
	}})
	a := start(t, quick(t, server.Address))
	file, _ := artifact(t, 10)
	err := a.UploadArtifact(t.Context(), file)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "upload cpu.pb.gz of capture c1") {
		t.Errorf("UploadArtifact = %v, want the server's refusal", err)
	}
}

func TestAnUploadEndsWithItsContext(t *testing.T) {
	for _, tt := range []struct {
		name string
		how  *uplinktest.Behaviour // nil: no server
	}{
		{"while there is no server", nil},
		{"while the server says nothing", &uplinktest.Behaviour{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := "127.0.0.1:1"
			var server *uplinktest.Server
			if tt.how != nil {
				server = uplinktest.Start(t, "127.0.0.1:0", uplinktest.NewState(), *tt.how)
				address = server.Address
			}
			a := start(t, quick(t, address))
			if server != nil {
				connected(t, a)
				server.Behave(func(b *uplinktest.Behaviour) { b.Mute = true })
			}
			file, _ := artifact(t, 10)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := a.UploadArtifact(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("UploadArtifact = %v, want its context's end", err)
			}
		})
	}
}

func TestAServerThatFallsSilentInAnUploadIsLeft(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	cfg := quick(t, server.Address)
	cfg.AnswerTimeout = 100 * time.Millisecond
	a := start(t, cfg)
	connected(t, a)
	server.Behave(func(b *uplinktest.Behaviour) { b.Mute = true })
	file, data := artifact(t, 10)
	done := make(chan error, 1)
	go func() { done <- a.UploadArtifact(t.Context(), file) }()
	eventually(t, "the upload is cut", func() bool { return strings.Contains(a.log.String(), "An upload was cut") })
	server.Behave(func(b *uplinktest.Behaviour) { b.Mute = false })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, _ := state.Artifact("c1", "cpu.pb.gz"); !bytes.Equal(got.Data, data) {
		t.Error("what arrived is not what was sent")
	}
}
