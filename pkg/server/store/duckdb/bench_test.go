// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/server/store"
	"diagon.dev/diagon/pkg/server/store/storetest"
)

// cpuTime is what this process has used, in all threads: other loads on the machine do not count.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIngest decodes and appends pprofs of ten seconds, sixteen to a call as under load.
func BenchmarkIngest(b *testing.B) {
	synthetic := storetest.NewSynthetic(1)
	const distinct = 64
	var packed [distinct][]byte
	records := 0
	for i := range packed {
		batch := synthetic.Batch("node", 1, crashStart)
		records += len(batch.Records)
		var buf bytes.Buffer
		if err := pprofio.Encode(&buf, &batch.Batch, pprofio.Meta{Node: "node"}); err != nil {
			b.Fatal(err)
		}
		packed[i] = buf.Bytes()
	}
	var decoded [distinct]profile.Batch
	for i := range decoded {
		var err error
		if decoded[i], _, err = pprofio.Decode(packed[i], pprofio.DefaultLimits()); err != nil {
			b.Fatal(err)
		}
	}
	for _, decode := range []bool{true, false} {
		name := map[bool]string{true: "from pprof", false: "decoded"}[decode]
		b.Run(name, func(b *testing.B) {
			s, err := Open(b.Context(), testConfigOf(b), slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var group []store.Batch
			before := cpuTime(b)
			sequence := uint64(0)
			for b.Loop() {
				sequence++
				batch := store.Batch{Node: "node", BootID: "boot", Sequence: sequence}
				if decode {
					p, _, err := pprofio.Decode(packed[sequence%distinct], pprofio.DefaultLimits())
					if err != nil {
						b.Fatal(err)
					}
					batch.Batch = p
				} else {
					batch.Batch = decoded[sequence%distinct]
				}
				batch.Start = crashStart.Add(time.Duration(sequence) * time.Second / 10)
				batch.End = batch.Start.Add(storetest.SyntheticWindow)
				if group = append(group, batch); len(group) == 16 {
					if err := s.Append(b.Context(), group...); err != nil {
						b.Fatal(err)
					}
					group = group[:0]
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/pprof")
			b.ReportMetric(float64(records)/distinct, "rows/pprof")
			if bytes, err := s.Retain(b.Context(), store.Retention{}, crashStart); err == nil && sequence > 0 {
				b.ReportMetric(float64(bytes)/float64(sequence), "disk-B/pprof")
			}
		})
	}
}

func testConfigOf(b *testing.B) Config {
	cfg := DefaultConfig(b.TempDir())
	cfg.Threads = 2
	cfg.FreeBytes = 0
	return cfg
}

// BenchmarkFlameGraph adds up stacks, warm, over node-hours of 578,000 rows.
func BenchmarkFlameGraph(b *testing.B) {
	for _, shape := range []struct{ nodes, hours int }{{1, 1}, {100, 1}, {10, 10}} {
		b.Run(fmt.Sprintf("nodes=%d/hours=%d", shape.nodes, shape.hours), func(b *testing.B) {
			s, err := Open(b.Context(), testConfigOf(b), slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			rows := grow(b, s, shape.nodes, shape.hours)
			sel := store.Selection{From: crashStart, To: crashStart.Add(time.Duration(shape.hours) * time.Hour)}
			if _, err := s.Stacks(b.Context(), profile.CPU, sel, 1<<20); err != nil {
				b.Fatal(err)
			}
			before := cpuTime(b)
			for b.Loop() {
				if _, err := s.Stacks(b.Context(), profile.CPU, sel, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(rows), "rows")
		})
	}
}

// grow appends a node-hour to each hour, and has DuckDB copy it for the other nodes.
func grow(b *testing.B, s *Store, nodes, hours int) (rows int) {
	synthetic := storetest.NewSynthetic(1)
	for hour := range hours {
		start := crashStart.Add(time.Duration(hour) * time.Hour)
		var group []store.Batch
		for i := range int(time.Hour / storetest.SyntheticWindow) {
			group = append(group, synthetic.Batch("node-0", uint64(hour*1000+i+1), start.Add(time.Duration(i)*storetest.SyntheticWindow)))
			if len(group) == 40 {
				if err := s.Append(b.Context(), group...); err != nil {
					b.Fatal(err)
				}
				group = group[:0]
			}
		}
	}
	for _, p := range s.snapshot() {
		ctx := context.WithoutCancel(b.Context())
		if err := p.attach(ctx, s); err != nil {
			b.Fatal(err)
		}
		for _, q := range []string{
			fmt.Sprintf("INSERT INTO %[1]s.samples SELECT s.* REPLACE ('node-' || n AS node) FROM range(1, %[2]d) t(n), %[1]s.samples s", p.catalog, nodes),
			fmt.Sprintf("INSERT INTO %[1]s.batches SELECT s.* REPLACE ('node-' || n AS node) FROM range(1, %[2]d) t(n), %[1]s.batches s", p.catalog, nodes),
			"CHECKPOINT " + p.catalog,
		} {
			if _, err := s.db.ExecContext(ctx, q); err != nil {
				b.Fatal(err)
			}
		}
		var n int
		if err := s.db.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM %s.samples", p.catalog)).Scan(&n); err != nil {
			b.Fatal(err)
		}
		rows += n
		if err := s.readContents(ctx, p); err != nil {
			b.Fatal(err)
		}
	}
	return rows
}
