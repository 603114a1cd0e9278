// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
)

// BenchmarkIngest pushes pprofs of 400 distinct stacks, 20 frames deep, from eight nodes over real
// sockets into the real store, until each is acknowledged. It reports pprofs per second of
// CPU time, the client's share in it included.
func BenchmarkIngest(b *testing.B) {
	cfg := DefaultConfig()
	cfg.HTTP, cfg.GRPC, cfg.Data, cfg.Spare = "127.0.0.1:0", "127.0.0.1:0", b.TempDir(), 0
	s, err := Start(b.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Stop)

	const nodes = 8
	templates := make([]*diagonv1.Batch, nodes)
	for n := range nodes {
		templates[n] = wide(b, fmt.Sprintf("n%d", n))
	}
	b.SetBytes(int64(len(templates[0].ProfileZstd)))
	b.ResetTimer()
	cpu, began := cpuTime(), time.Now()
	done := make(chan error, nodes)
	for n := range nodes {
		share := b.N / nodes
		if n < b.N%nodes {
			share++
		}
		go func() { done <- pushMany(b, s.GRPCAddr(), templates[n], share) }()
	}
	for range nodes {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/(cpuTime()-cpu).Seconds(), "pprofs/cpu-s")
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "pprofs/s")
}

// wide is a batch of 400 stacks over 2,000 places.
func wide(b *testing.B, node string) *diagonv1.Batch {
	b.Helper()
	m := &profile.Mapping{Path: "/usr/bin/train", BuildID: "0123456789abcdef"}
	places := make([]*profile.Location, 2000)
	for i := range places {
		places[i] = &profile.Location{Mapping: m, Offset: uint64(i) * 64, Lines: []profile.Line{{
			Function: fmt.Sprintf("train::step_%d", i/4), File: fmt.Sprintf("step%d.cc", i/100), Number: i}}}
	}
	now := time.Now()
	p := &profile.Batch{Start: now.Add(-10 * time.Second), End: now, PeriodNS: 52_631_578}
	for i := range 400 {
		r := profile.Record{Subject: &profile.Subject{PID: i % 10, Comm: "train"}}
		for d := range 20 {
			l := places[(i*7+d*131*(i%5+1))%len(places)]
			r.Stack = append(r.Stack, profile.Frame{Address: l.Offset, Location: l})
		}
		r.Values[profile.Samples], r.Values[profile.CPU] = 3, 3*p.PeriodNS
		p.Records = append(p.Records, r)
	}
	raw, err := pprofio.Marshal(p, pprofio.Meta{Node: node})
	if err != nil {
		b.Fatal(err)
	}
	return sealed(&diagonv1.Batch{
		Node: node, BootId: "boot-" + node, Samples: 1200,
		StartUnixNano: p.Start.UnixNano(), EndUnixNano: p.End.UnixNano(), ProfileZstd: packer.EncodeAll(raw, nil),
	})
}

// pushMany sends n batches with at most 32 unacknowledged.
func pushMany(b *testing.B, addr string, template *diagonv1.Batch, n int) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := diagonv1.NewDiagnosticsClient(conn).PushProfiles(b.Context())
	if err != nil {
		return err
	}
	window := make(chan struct{}, 32)
	go func() {
		for i := range n {
			window <- struct{}{}
			next := &diagonv1.Batch{
				Node: template.Node, BootId: template.BootId, Sequence: uint64(i + 1), Samples: template.Samples,
				StartUnixNano: template.StartUnixNano, EndUnixNano: template.EndUnixNano,
				ProfileZstd: template.ProfileZstd, Crc32C: template.Crc32C,
			}
			if stream.Send(&diagonv1.PushProfilesRequest{Batch: next}) != nil {
				break
			}
		}
		_ = stream.CloseSend()
	}()
	for durable := uint64(0); ; {
		r, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(r.GetRejected()) > 0 {
			return fmt.Errorf("rejected: %v", r.GetRejected())
		}
		for ; durable < r.GetDurableSequence(); durable++ {
			<-window
		}
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
