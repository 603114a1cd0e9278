// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// cpu is the CPU time this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStage is a sample of 30 frames, all known: the steady state.
func BenchmarkStage(b *testing.B) {
	s, _ := start(b)
	pcs := make([]uintptr, 8)
	n := runtime.Callers(0, pcs)
	var stack []profile.Frame
	for i := range 30 {
		stack = append(stack, user(uint64(pcs[i%n])+uint64(i/n))...)
	}
	sink := s.Into(collector.SinkFunc(func(profile.Sample) {}))
	pid := os.Getpid()
	sample := func(spread time.Duration) {
		for i := range stack {
			stack[i].Location = nil
		}
		now = now.Add(spread)
		sink.Put(profile.Sample{Time: now, PID: pid, Stack: stack})
	}
	now = time.Now()
	s.now = func() time.Time { return now }
	for _, bench := range []struct {
		name   string
		spread time.Duration // between samples of one process
	}{
		{"at 19 Hz", time.Second / 19},
		{"at 997 Hz", time.Second / 997},
	} {
		b.Run(bench.name, func(b *testing.B) {
			sample(0)
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				sample(bench.spread)
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

var now time.Time

// BenchmarkMiss is one address never seen before, in a file whose tables are there.
func BenchmarkMiss(b *testing.B) {
	s, _ := start(b)
	pcs := make([]uintptr, 1)
	runtime.Callers(0, pcs)
	sink := s.Into(collector.SinkFunc(func(profile.Sample) {}))
	pid := os.Getpid()
	sink.Put(profile.Sample{PID: pid, Stack: user(uint64(pcs[0]))})
	b.ReportAllocs()
	before := cpu(b)
	i := uint64(0)
	for b.Loop() {
		i++
		sink.Put(profile.Sample{PID: pid, Stack: user(uint64(pcs[0]) + i%(1<<20))})
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkOpen reads the tables of the largest files there are.
func BenchmarkOpen(b *testing.B) {
	for _, pattern := range []string{
		"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/chromium/chromium", "/usr/bin/node", "/usr/local/go/bin/go",
		"/usr/lib/x86_64-linux-gnu/libLLVM*.so.19.1", "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.19.1",
		"/usr/lib/x86_64-linux-gnu/libtorch_cpu.so*", "/root/.rustup/toolchains/*/lib/librustc_driver*.so",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			b.Fatal(err)
		}
		if len(paths) == 0 {
			continue
		}
		b.Run(filepath.Base(paths[0]), func(b *testing.B) {
			f, err := os.Open(paths[0])
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil {
				b.Fatal(err)
			}
			files := &files{host: "/", now: time.Now, open: map[fileID]*openFile{}}
			var o *object
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				o = &object{id: identify(&st)}
				o.from.m.Path = paths[0]
				load(o, f, DefaultConfig(), files)
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
			functions := 0
			for _, t := range o.tables {
				functions += t.Len()
			}
			b.ReportMetric(float64(functions), "functions")
			b.ReportMetric(float64(o.bytes), "held-B")
			b.ReportMetric(float64(st.Size)/1e6, "file-MB")
		})
	}
}
