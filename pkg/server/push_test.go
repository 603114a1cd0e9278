// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

func TestSendingABatchAgainIsHarmless(t *testing.T) {
	s := start(t, testConfig(t))
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	for range 3 {
		durable, _, err := push(t, c, batch(t, "n", 1, 10), batch(t, "n", 2, 1))
		if err != nil || durable != 2 {
			t.Fatalf("push = %d, %v", durable, err)
		}
	}
	if got := stored(t, s, ""); got != 11 {
		t.Errorf("the store holds %d samples, want 11", got)
	}
	a := connect(t, c, "n", "i")
	if r := hear[*diagonv1.BackendMessage_Registration](a).Registration; r.GetDurableSequence() != 2 {
		t.Errorf("at registration the server holds up to %d, want 2", r.GetDurableSequence())
	}
}

func TestARejectedBatchDoesNotHoldUpTheOthers(t *testing.T) {
	s := start(t, testConfig(t))
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	bad := batch(t, "n", 2, 1)
	bad.Crc32C++
	durable, rejected, err := push(t, c, batch(t, "n", 1, 1), bad, batch(t, "n", 3, 1))
	if err != nil || durable != 3 {
		t.Fatalf("push = %d, %v", durable, err)
	}
	if len(rejected) != 1 || rejected[0].GetSequence() != 2 || !strings.Contains(rejected[0].GetReason(), "crc32c") {
		t.Errorf("rejected %v", rejected)
	}
	if got := stored(t, s, ""); got != 2 {
		t.Errorf("the store holds %d samples, want 2", got)
	}
	if text := get(t, s, "/metrics"); !strings.Contains(text, `diagon_server_batches_rejected_total{reason="crc"} 1`) {
		t.Errorf("the rejection is not counted in\n%s", text)
	}
}

func TestAStreamCarriesOneNodeInOrder(t *testing.T) {
	s := start(t, testConfig(t))
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	for _, tt := range []struct {
		name    string
		batches []*diagonv1.Batch
		want    string
	}{
		{"a number that falls", []*diagonv1.Batch{batch(t, "n", 5, 1), batch(t, "n", 4, 1)}, "sequence 4 after 5"},
		{"another node's batch", []*diagonv1.Batch{batch(t, "n", 6, 1), batch(t, "m", 7, 1)}, `of node "m"`},
		{"a name that is a path", []*diagonv1.Batch{batch(t, "../n", 1, 1)}, "make a name"},
		{"no name", []*diagonv1.Batch{batch(t, "", 1, 1)}, "is empty"},
		{"no batch", []*diagonv1.Batch{nil}, "without a batch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := push(t, c, tt.batches...)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want INVALID_ARGUMENT saying %q", err, tt.want)
			}
		})
	}
}

func TestAFullStoreSendsAgentsAwayAndSaysSo(t *testing.T) {
	s := start(t, testConfig(t))
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	s.cfg.Spare = 1 << 62 // no disk has that
	s.checkRoom()
	_, _, err := push(t, c, batch(t, "n", 1, 1))
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("err = %v, want RESOURCE_EXHAUSTED", err)
	}
	var delay time.Duration
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			delay = info.GetRetryDelay().AsDuration()
		}
	}
	if delay < time.Second {
		t.Errorf("asks to retry after %v", delay)
	}
	call(t, s, "GET", "/readyz", "", http.StatusServiceUnavailable, nil)
	call(t, s, "GET", "/healthz", "", http.StatusOK, nil)

	s.cfg.Spare = 0
	s.checkRoom()
	if durable, _, err := push(t, c, batch(t, "n", 1, 1)); err != nil || durable != 1 {
		t.Errorf("with room again: %d, %v", durable, err)
	}
	call(t, s, "GET", "/readyz", "", http.StatusOK, nil)
}

func TestAMessageThatIsTooLargeEndsTheStream(t *testing.T) {
	s := start(t, testConfig(t))
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	big := sealed(&diagonv1.Batch{Node: "n", BootId: "b", Sequence: 1, ProfileZstd: make([]byte, s.cfg.Ingest.Message+1)})
	if _, _, err := push(t, c, big); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("err = %v, want RESOURCE_EXHAUSTED", err)
	}
}

func TestAnAgentMayNotSendAheadOfItsCreditForever(t *testing.T) {
	cfg := testConfig(t)
	cfg.Ingest.Credit = 64 << 10
	s := start(t, cfg)
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stream, err := c.PushProfiles(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || first.GetCreditBytes() != 64<<10 {
		t.Fatalf("the first answer grants %d, %v", first.GetCreditBytes(), err)
	}
	const n = 200
	for i := range n { // all at once: what is over the credit waits outside
		if err := stream.Send(&diagonv1.PushProfilesRequest{Batch: batch(t, "n", uint64(i+1), 1)}); err != nil {
			t.Fatal(err)
		}
	}
	for durable := uint64(0); durable < n; {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetDurableSequence() < durable {
			t.Fatalf("acknowledged %d after %d", r.GetDurableSequence(), durable)
		}
		durable = r.GetDurableSequence()
	}
	if got := stored(t, s, ""); got != n {
		t.Errorf("the store holds %d samples, want %d", got, n)
	}
}
