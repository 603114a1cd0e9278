// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/server/captures"
)

const (
	stateRunning   = diagonv1.CaptureState_CAPTURE_STATE_RUNNING
	stateSucceeded = diagonv1.CaptureState_CAPTURE_STATE_SUCCEEDED
	stateRefused   = diagonv1.CaptureState_CAPTURE_STATE_REFUSED
)

func ask(t *testing.T, s *Server, nodes, deadline string) captures.Capture {
	t.Helper()
	var c captures.Capture
	body := fmt.Sprintf(`{"kind": "cpu", "targets": {"nodes": [%s]}, "duration": "200ms", "hz": 99, "deadline": %q}`, nodes, deadline)
	call(t, s, "POST", "/api/v1/captures", body, http.StatusCreated, &c)
	return c
}

func captureIs(t *testing.T, s *Server, id, state string) captures.Capture {
	t.Helper()
	var c captures.Capture
	waitFor(t, "the capture is "+state, func() bool {
		call(t, s, "GET", "/api/v1/captures/"+id, "", http.StatusOK, &c)
		return c.State == state
	})
	if c.Message == "" {
		t.Errorf("%s without a sentence", state)
	}
	return c
}

// file is a pprof file of n samples.
func file(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := pprofio.Encode(&b, sampled(n), pprofio.Meta{Node: "n"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// upload sends data from the offset the server names, in chunks, and stops after so many bytes; 0 sends
// all and commits.
func upload(t *testing.T, client diagonv1.DiagnosticsClient, id, node, name string, data []byte, stopAfter int) (began uint64, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stream, err := client.UploadArtifact(ctx)
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(data)
	send := func(m *diagonv1.UploadArtifactRequest) { _ = stream.Send(m) } // the reason comes by Recv
	send(&diagonv1.UploadArtifactRequest{Message: &diagonv1.UploadArtifactRequest_Begin{Begin: &diagonv1.ArtifactBegin{
		CaptureId: id, Node: node, Name: name, Size: uint64(len(data)), Sha256: sum[:], ContentType: "application/octet-stream"}}})
	r, err := stream.Recv()
	if err != nil {
		return 0, err
	}
	began = r.GetCommittedOffset()
	const chunk = 100
	for at := int(began); at < len(data); at += chunk {
		if stopAfter > 0 && at-int(began) >= stopAfter {
			_ = stream.CloseSend()
			_, err := stream.Recv()
			return began, err
		}
		part := data[at:min(at+chunk, len(data))]
		send(&diagonv1.UploadArtifactRequest{Message: &diagonv1.UploadArtifactRequest_Chunk{Chunk: &diagonv1.ArtifactChunk{
			Offset: uint64(at), Data: part, Crc32C: crc32.Checksum(part, castagnoli)}}})
	}
	send(&diagonv1.UploadArtifactRequest{Message: &diagonv1.UploadArtifactRequest_Commit{}})
	r, err = stream.Recv()
	if err == nil && !r.GetComplete() {
		t.Error("answered a commit without complete")
	}
	return began, err
}

func TestTheLifeOfACapture(t *testing.T) {
	s := start(t, testConfig(t))
	client := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	a := connect(t, client, "n", "i")
	hear[*diagonv1.BackendMessage_Registration](a)

	c := ask(t, s, `"n"`, "30s")
	if c.State != captures.Pending || c.Hz != 99 || c.DurationMS != 200 {
		t.Errorf("created %+v", c)
	}
	order := hear[*diagonv1.BackendMessage_Capture](a).Capture
	if order.GetId() != c.ID || order.GetKind() != "cpu" || order.GetDurationMs() != 200 || order.GetOptions()["hz"] != "99" || order.GetDeadlineUnixNano() <= order.GetStartUnixNano() {
		t.Errorf("order %v", order)
	}
	a.report(c.ID, stateRunning, "sampling")
	captureIs(t, s, c.ID, captures.Running)

	// The last word overtakes the file: the capture succeeds when both are there.
	a.report(c.ID, stateSucceeded, "done", "cpu.pb.gz")
	waitFor(t, "the server waits for the file", func() bool {
		got, err := s.captures.Get(c.ID)
		return err == nil && strings.Contains(got.Message, "waiting for its cpu.pb.gz")
	})
	data := file(t, 40)
	if began, err := upload(t, client, c.ID, "n", "cpu.pb.gz", data, 200); status.Code(err) != codes.Canceled || began != 0 {
		t.Fatalf("an upload that stops: %d, %v", began, err)
	}
	began, err := upload(t, client, c.ID, "n", "cpu.pb.gz", data, 0)
	if err != nil || began == 0 {
		t.Fatalf("the upload went on at %d, %v", began, err)
	}
	if began, err := upload(t, client, c.ID, "n", "cpu.pb.gz", data, 0); err != nil || began != uint64(len(data)) {
		t.Errorf("uploaded again: %d, %v", began, err)
	}
	c = captureIs(t, s, c.ID, captures.Succeeded)
	if arts := c.Targets[0].Artifacts; len(arts) != 1 || arts[0].Name != "n.cpu.pb.gz" || arts[0].Size != int64(len(data)) {
		t.Errorf("artifacts %+v", arts)
	}
	if got := stored(t, s, c.ID); got != 40 {
		t.Errorf("the store holds %d samples of the capture, want 40", got)
	}
	if got := stored(t, s, ""); got != 0 {
		t.Errorf("%d samples of the capture are among the always-on ones", got)
	}
	if got := get(t, s, "/api/v1/profiles?type=samples&format=folded&capture="+c.ID); got != "main;spin 40\n" {
		t.Errorf("the flame graph of the capture: %q", got)
	}
	if got := download(t, s, c.ID, "n.cpu.pb.gz"); !bytes.Equal(got, data) {
		t.Errorf("downloaded %d bytes, want the %d that were sent", len(got), len(data))
	}
	call(t, s, "GET", "/api/v1/captures/"+c.ID+"/artifacts/n.nothing", "", http.StatusNotFound, nil)
	call(t, s, "GET", "/api/v1/captures/"+c.ID+"/artifacts/..%2Fn.cpu.pb.gz", "", http.StatusNotFound, nil)

	var list struct{ Captures []captures.Capture }
	call(t, s, "GET", "/api/v1/captures?limit=1", "", http.StatusOK, &list)
	if len(list.Captures) != 1 || list.Captures[0].ID != c.ID {
		t.Errorf("list %+v", list)
	}
}

func download(t *testing.T, s *Server, id, name string) []byte {
	t.Helper()
	resp, err := client(t).Get(s.URL() + "/api/v1/captures/" + id + "/artifacts/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("download = %d, %v", resp.StatusCode, err)
	}
	return raw
}

func TestACaptureThatEndsOtherwise(t *testing.T) {
	s := start(t, testConfig(t))
	client := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	a, b := connect(t, client, "a", "i"), connect(t, client, "b", "i")
	hear[*diagonv1.BackendMessage_Registration](a)
	hear[*diagonv1.BackendMessage_Registration](b)

	t.Run("one of two succeeds", func(t *testing.T) {
		c := ask(t, s, `"a", "b"`, "30s")
		start := hear[*diagonv1.BackendMessage_Capture](a).Capture.GetStartUnixNano()
		if other := hear[*diagonv1.BackendMessage_Capture](b).Capture.GetStartUnixNano(); other != start {
			t.Errorf("starts differ: %d, %d", start, other)
		}
		a.report(c.ID, stateSucceeded, "done")
		b.report(c.ID, stateRefused, "no capture is allowed here")
		if got := captureIs(t, s, c.ID, captures.Partial); !strings.Contains(got.Message, "no capture is allowed here") {
			t.Errorf("message %q", got.Message)
		}
		a.report(c.ID, stateRunning, "again") // the dead stay dead
		a.beat(true, func(hb *diagonv1.DaemonHeartbeatRequest) { hb.Losses = []*diagonv1.Loss{{Place: "ring", Count: 1}} })
		waitFor(t, "the heartbeat behind it is taken", func() bool { return len(nodeOf(t, s, "a").Losses) == 1 })
		captureIs(t, s, c.ID, captures.Partial)
	})
	t.Run("a person cancels it", func(t *testing.T) {
		c := ask(t, s, `"a"`, "30s")
		hear[*diagonv1.BackendMessage_Capture](a)
		call(t, s, "DELETE", "/api/v1/captures/"+c.ID, "", http.StatusOK, nil)
		if got := hear[*diagonv1.BackendMessage_CancelCapture](a).CancelCapture.GetId(); got != c.ID {
			t.Errorf("cancelled %q", got)
		}
		captureIs(t, s, c.ID, captures.Cancelled)
		if _, err := upload(t, client, c.ID, "a", "cpu.pb.gz", file(t, 1), 0); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("upload to a cancelled capture = %v", err)
		}
	})
	t.Run("the deadline passes", func(t *testing.T) {
		c := ask(t, s, `"a"`, "1500ms")
		hear[*diagonv1.BackendMessage_Capture](a)
		captureIs(t, s, c.ID, captures.Expired)
	})
	t.Run("its node is restarted", func(t *testing.T) {
		c := ask(t, s, `"a"`, "30s")
		hear[*diagonv1.BackendMessage_Capture](a)
		a.report(c.ID, stateRunning, "sampling")
		captureIs(t, s, c.ID, captures.Running)
		hear[*diagonv1.BackendMessage_Registration](connect(t, client, "a", "another-life"))
		captureIs(t, s, c.ID, captures.Failed)
	})
}

func TestAnOrderWaitsForItsNodeAndOutlivesTheServer(t *testing.T) {
	cfg := testConfig(t)
	s := start(t, cfg)
	a := connect(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), "n", "i")
	hear[*diagonv1.BackendMessage_Registration](a)
	a.cancel()
	waitFor(t, "the node is gone", func() bool { return !nodeOf(t, s, "n").Connected })
	c := ask(t, s, `"n"`, "60s")
	waitFor(t, "the capture says what it waits for", func() bool {
		got, err := s.captures.Get(c.ID)
		return err == nil && strings.Contains(got.Message, "not connected")
	})
	s.Stop()

	s = start(t, cfg)
	if n := nodeOf(t, s, "n"); n.Connected {
		t.Error("a node is connected right after the start")
	}
	a = connect(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), "n", "i2")
	if got := hear[*diagonv1.BackendMessage_Capture](a).Capture.GetId(); got != c.ID {
		t.Errorf("order %q, want %q", got, c.ID)
	}
	a.report(c.ID, stateSucceeded, "")
	captureIs(t, s, c.ID, captures.Succeeded)
}

func TestAnUploadIsChecked(t *testing.T) {
	s := start(t, testConfig(t))
	client := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	hear[*diagonv1.BackendMessage_Registration](connect(t, client, "n", "i"))
	c := ask(t, s, `"n"`, "30s")
	if _, err := upload(t, client, "01UNKNOWN", "n", "cpu.pb.gz", []byte("x"), 0); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown capture: %v", err)
	}
	if _, err := upload(t, client, c.ID, "m", "cpu.pb.gz", []byte("x"), 0); status.Code(err) != codes.NotFound {
		t.Errorf("another node: %v", err)
	}
	if _, err := upload(t, client, c.ID, "n", "../cpu", []byte("x"), 0); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a path for a name: %v", err)
	}
	// No profile: the file is kept all the same.
	if _, err := upload(t, client, c.ID, "n", "notes.txt", []byte("not a profile"), 0); err != nil {
		t.Errorf("a text: %v", err)
	}
	if got := download(t, s, c.ID, "n.notes.txt"); string(got) != "not a profile" {
		t.Errorf("downloaded %q", got)
	}
	if _, err := upload(t, client, c.ID, "n", "notes.txt", []byte("other bytes"), 0); status.Code(err) != codes.InvalidArgument {
		t.Errorf("other bytes under the same name: %v", err)
	}
}

func TestARequestIsRefusedByItsField(t *testing.T) {
	s := start(t, testConfig(t))
	hear[*diagonv1.BackendMessage_Registration](connect(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), "n", "i"))
	for body, want := range map[string]string{
		`{"kind": "dance", "targets": {"nodes": ["n"]}, "duration": "1s"}`:                  "kind",
		`{"kind": "cpu", "targets": {"nodes": []}, "duration": "1s"}`:                       "targets.nodes",
		`{"kind": "cpu", "targets": {"nodes": ["m"]}, "duration": "1s"}`:                    `"m"`,
		`{"kind": "cpu", "targets": {"nodes": ["n"]}}`:                                      "duration",
		`{"kind": "cpu", "targets": {"nodes": ["n"]}, "duration": "2h"}`:                    "duration",
		`{"kind": "cpu", "targets": {"nodes": ["n"]}, "duration": 5}`:                       "duration",
		`{"kind": "cpu", "targets": {"nodes": ["n"], "pids": [-1]}, "duration": "1s"}`:      "targets.pids",
		`{"kind": "cpu", "targets": {"nodes": ["n"]}, "duration": "1s", "hz": 1000}`:        "hz",
		`{"kind": "cpu", "targets": {"nodes": ["n"]}, "duration": "10s", "deadline": "5s"}`: "deadline",
		`{"kind": "cpu", "targets": {"nodes": ["n"]}, "duration": "1s", "colour": "red"}`:   "colour",
		`{"kind": "cpu", "targets": {"nodes": ["n"]}, "duration": "1s"} {}`:                 "follows",
		`not json`: "invalid character",
	} {
		var got struct{ Error string }
		call(t, s, "POST", "/api/v1/captures", body, http.StatusBadRequest, &got)
		if !strings.Contains(got.Error, want) {
			t.Errorf("%s\n answered %q, want it to name %s", body, got.Error, want)
		}
	}
}
