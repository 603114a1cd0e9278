// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// childVariable makes the test binary a server on the folder that it names.
const childVariable = "DIAGON_TEST_SERVER_DATA"

// child serves until it is killed, and says on standard output where.
func child() {
	cfg := DefaultConfig()
	cfg.HTTP, cfg.GRPC, cfg.Data, cfg.Spare = "127.0.0.1:0", "127.0.0.1:0", os.Getenv(childVariable), 0
	s, err := Start(context.Background(), cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("grpc", s.GRPCAddr())
	select {}
}

// startChild returns a server process on the folder, and where it takes agents.
func startChild(t *testing.T, data string) (kill func(), addr string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server process said nothing: %v", err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "grpc ")
	if !ok {
		t.Fatalf("the server process said %q", line)
	}
	return kill, addr
}

// Each of several nodes pushes batches of one sample until the server is killed, keeps what was not
// acknowledged, and sends it again to the next one.
func TestKilledWhilePushingNothingIsLostAndNothingTwice(t *testing.T) {
	const nodes, kills = 4, 3
	data := t.TempDir()
	acked := make([]uint64, nodes) // highest acknowledged sequence
	var sent [nodes]uint64         // highest that ever left
	for range kills {
		kill, addr := startChild(t, data)
		var total atomic.Uint64
		var streams sync.WaitGroup
		for n := range nodes {
			streams.Go(func() { acked[n] = pushUntilCut(t, addr, fmt.Sprintf("n%d", n), acked[n], &sent[n], &total) })
		}
		for end := time.Now().Add(20 * time.Second); total.Load() < 100 && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		kill()
		streams.Wait()
	}

	cfg := testConfig(t)
	cfg.Data = data
	s := start(t, cfg)
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	var want int64
	for n := range nodes {
		name := fmt.Sprintf("n%d", n)
		if acked[n] == 0 {
			t.Fatalf("node %s had nothing acknowledged", name)
		}
		durable, err := s.store.DurableSequence(t.Context(), name, "boot-"+name)
		if err != nil || durable < acked[n] {
			t.Errorf("%s: the store holds up to %d, %v; acknowledged were %d", name, durable, err, acked[n])
		}
		// What left and was not acknowledged is sent again, as the agent does.
		var again []*diagonv1.Batch
		for q := acked[n] + 1; q <= sent[n]; q++ {
			again = append(again, batch(t, name, q, 1))
		}
		if len(again) > 0 {
			if durable, _, err := push(t, c, again...); err != nil || durable != sent[n] {
				t.Fatalf("%s: sent again: %d, %v", name, durable, err)
			}
		}
		want += int64(sent[n])
	}
	if got := stored(t, s, ""); got != want {
		t.Errorf("the store holds %d samples, want %d: one of each batch", got, want)
	}
}

// pushUntilCut returns the highest acknowledged sequence.
func pushUntilCut(t *testing.T, addr, node string, from uint64, sent *uint64, total *atomic.Uint64) uint64 {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return from
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := diagonv1.NewDiagnosticsClient(conn).PushProfiles(ctx)
	if err != nil {
		t.Error(err)
		return from
	}
	var acked atomic.Uint64
	acked.Store(from)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			if d := r.GetDurableSequence(); d > 0 {
				total.Add(d - acked.Swap(d))
			}
		}
	}()
	for q := from + 1; ; q++ {
		for q > acked.Load()+64 && ctx.Err() == nil { // a window, as an agent has
			select {
			case <-done:
				return acked.Load()
			case <-time.After(time.Millisecond):
			}
		}
		*sent = max(*sent, q)
		if stream.Send(&diagonv1.PushProfilesRequest{Batch: batch(t, node, q, 1)}) != nil {
			<-done
			return acked.Load()
		}
	}
}
