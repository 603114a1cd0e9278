// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// BenchmarkCollector samples whatever the machine does for ten seconds and says
// what a sample costs, in the kernel and here. Use -benchtime 1x.
func BenchmarkCollector(b *testing.B) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Skip(err)
	}
	defer stats.Close()

	for _, hz := range []int{19, 99, 997} {
		b.Run(fmt.Sprintf("%dHz", hz), func(b *testing.B) {
			for b.Loop() {
				measure(b, hz)
			}
		})
	}
}

func measure(b *testing.B, hz int) {
	cfg := DefaultConfig()
	cfg.Hz = hz
	var lost uint64
	c := New(cfg, func(_ string, n uint64) { lost += n })
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()

	var samples, frames int
	var mapBytes uint64
	var steady time.Duration // CPU time at the first sample: what loading cost is not a sample's
	err := c.Run(ctx, collector.SinkFunc(func(s profile.Sample) {
		if samples == 0 {
			steady = cpuTime(b)
			mapBytes = c.Kernel().MapBytes
		}
		samples++
		frames += len(s.Stack)
	}))
	if err != nil {
		b.Fatal(err)
	}
	spent := cpuTime(b) - steady
	program := c.Kernel().Programs[0]
	b.ReportMetric(float64(program.RunTime.Nanoseconds())/float64(program.Runs), "bpf-ns/run")
	b.ReportMetric(float64(program.Runs), "runs")
	b.ReportMetric(float64(spent.Microseconds())/float64(samples), "user-us/sample")
	b.ReportMetric(float64(samples), "samples")
	b.ReportMetric(float64(frames)/float64(samples), "frames/sample")
	b.ReportMetric(float64(mapBytes)/1024, "map-KiB")
	b.ReportMetric(float64(lost), "lost")
	b.ReportMetric(0, "ns/op")
}

// cpuTime is what this process has spent so far, in user space and the kernel.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
