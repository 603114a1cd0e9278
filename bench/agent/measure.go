// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Ports that nothing else is likely to use.
const (
	serverHTTP = "127.0.0.1:17170"
	serverGRPC = "127.0.0.1:17171"
	agentHTTP  = "127.0.0.1:17172"
)

// start runs a program; its log goes where this program's does.
func start(ctx context.Context, env []string, program string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return cmd, nil
}

func stopAll(programs []*exec.Cmd) {
	for _, cmd := range programs {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, cmd := range programs {
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
	}
}

func waitFor(ctx context.Context, url string) error {
	for range 300 {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s did not answer within 30 s", url)
}

// A reading is the agent's books at one moment.
type reading struct {
	cpu, rss, mapBytes     float64 // seconds, bytes, bytes
	samples, lost          float64
	bpfSeconds, bpfRuns    float64
	sentBytes, sentSamples float64
	named, unnamed         float64
	rooted, cutOff         float64
}

// read asks the agent's /metrics.
func read(ctx context.Context) (reading, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+agentHTTP+"/metrics", nil)
	if err != nil {
		return reading{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reading{}, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return reading{}, fmt.Errorf("agent's /metrics: %w", err)
	}
	sum := func(name string, want ...string) float64 {
		total := 0.0
		for _, m := range families[name].GetMetric() {
			if len(want) == 2 {
				match := false
				for _, l := range m.GetLabel() {
					match = match || l.GetName() == want[0] && l.GetValue() == want[1]
				}
				if !match {
					continue
				}
			}
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return total
	}
	return reading{
		cpu: sum("process_cpu_seconds_total"), rss: sum("process_resident_memory_bytes"), mapBytes: sum("diagon_bpf_map_bytes"),
		samples: sum("diagon_samples_total", "type", "samples"), lost: sum("diagon_lost_total"),
		bpfSeconds: sum("diagon_bpf_run_seconds_total", "program", "oncpu"), bpfRuns: sum("diagon_bpf_runs_total", "program", "oncpu"),
		sentBytes: sum("diagon_sent_bytes_total"), sentSamples: sum("diagon_sent_samples_total"),
		named: sum("diagon_frames_total", "named", "true"), unnamed: sum("diagon_frames_total", "named", "false"),
		rooted: sum("diagon_stacks_total", "root", "true"), cutOff: sum("diagon_stacks_total", "root", "false"),
	}, nil
}

// firstSample waits for it and answers the books at that moment.
func firstSample(ctx context.Context) (reading, error) {
	for range 600 {
		if r, err := read(ctx); err == nil && r.samples > 0 {
			return r, nil
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return reading{}, ctx.Err()
		}
	}
	return reading{}, errors.New("the agent took no sample within 30 s")
}

func printTable(rate int, first, from, to reading) {
	n := to.samples - from.samples
	fmt.Printf("| at %d Hz, steady state | measured |\n|---|---|\n", rate)
	row := func(what, format string, v float64) { fmt.Printf("| %s | "+format+" |\n", what, v) }
	row("samples", "%.0f", n)
	row("frames a sample", "%.1f", (to.named+to.unnamed-from.named-from.unnamed)/n)
	row("user-space CPU a sample, all in, us", "%.1f", (to.cpu-from.cpu)/n*1e6)
	row("BPF a run, us", "%.2f", (to.bpfSeconds-from.bpfSeconds)/(to.bpfRuns-from.bpfRuns)*1e6)
	row("start-up CPU until the first sample, s", "%.2f", first.cpu)
	row("RSS, MiB", "%.1f", to.rss/(1<<20))
	row("BPF maps, MiB", "%.2f", to.mapBytes/(1<<20))
	row("wire bytes a sample, all in", "%.1f", (to.sentBytes-from.sentBytes)/(to.sentSamples-from.sentSamples))
	row("frames with a name, %", "%.1f", 100*(to.named-from.named)/(to.named+to.unnamed-from.named-from.unnamed))
	row("stacks that reach the root, %", "%.1f", 100*(to.rooted-from.rooted)/(to.rooted+to.cutOff-from.rooted-from.cutOff))
	row("lost, all places", "%.0f", to.lost-from.lost)
}
