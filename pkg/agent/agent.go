// SPDX-License-Identifier: Apache-2.0

// Package agent joins the node's parts: collectors, names, windows, the wire. It is the only
// place where they meet, and pipeline.go says in one expression how.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/agent/doctor"
	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/collector/host"
	"diagon.dev/diagon/pkg/collector/oncpu"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/uplink"
)

const procRoot = "/proc"

// lastWords is how long a stopping agent tries to send what it still holds. What
// stays is in the spool and goes out with the next start.
const lastWords = 3 * time.Second

// An agent is the node's parts while they run.
type agent struct {
	cfg      Config
	log      *slog.Logger
	losses   *Losses
	quality  *quality
	latest   *latest
	names    Names
	findings []doctor.Finding
	runner   *collector.Runner
	pipeline *Pipeline
	cpu      atomic.Pointer[oncpu.Collector] // the newest; replaced when the rate changes
	session  *uplink.Session                 // nil: nothing is sent
	captures *Captures
	settings atomic.Uint64 // generation in force
	meta     pprofio.Meta
	zstd     *zstd.Encoder
}

// Run runs the agent on this host until ctx is done, and returns nil then, with nothing left
// in the kernel.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	a, err := open(ctx, cfg, log)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	defer a.close()
	if err := a.run(ctx); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// open makes the parts and joins them; nothing runs yet.
func open(ctx context.Context, cfg Config, log *slog.Logger) (_ *agent, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	bootID, err := readBootID()
	if err != nil {
		return nil, err
	}
	a := &agent{
		cfg: cfg, log: log,
		losses: new(Losses), latest: new(latest),
		meta: pprofio.Meta{Node: cfg.Node, AgentVersion: cfg.Version, BootID: bootID},
	}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	// One thread and small windows: the batches are small and the agent's memory is bounded.
	a.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	if a.names, err = OpenNames(procRoot, a.losses.Lost, log); err != nil {
		return nil, err
	}
	a.quality = a.names.quality

	a.findings = doctor.Examine(ctx, doctor.Config{Proc: procRoot, Sys: "/sys", Data: cfg.Uplink.Data})
	log.Info("diagon agent starts", "version", cfg.Version, "node", cfg.Node, "host", doctor.Summary(a.findings))

	if err := a.connect(bootID); err != nil {
		return nil, err
	}
	a.pipeline = NewPipeline(a.names, a.losses, cfg.Window, a.push)
	a.runner = collector.NewRunner(log, a.pipeline)
	a.sample(cfg.OnCPU)
	a.runner.Set(host.New(cfg.Host, func(r profile.Reading) { a.latest.note(r); a.pipeline.Note(r) }))
	return a, nil
}

// close releases what open made, as far as it came.
func (a *agent) close() {
	if a.session != nil {
		if err := a.session.Close(); err != nil {
			a.log.Warn("close the spool", "error", err)
		}
	}
	if a.names.Symbols != nil {
		if err := a.names.Close(); err != nil {
			a.log.Warn("close the symbol files", "error", err)
		}
	}
	if a.zstd != nil {
		_ = a.zstd.Close()
	}
}

// connect prepares the session with the server, if there is one to be had.
func (a *agent) connect(bootID string) error {
	if a.cfg.Uplink.Channel == "" {
		a.log.Warn("no --channel: profiles are sampled and not sent; only /metrics tells of them")
		return nil
	}
	session, err := uplink.New(a.cfg.Uplink, uplink.Identity{Node: a.cfg.Node, BootID: bootID}, orders{a}, reporter{a}, a.losses.Lost, a.log)
	if err != nil {
		return err
	}
	a.session = session
	a.captures = &Captures{
		names: a.names, ceilings: a.cfg.Ceilings, meta: a.meta, proc: procRoot,
		dir: filepath.Join(a.cfg.Uplink.Data, "captures"), link: session, log: a.log,
	}
	return nil
}

// sample begins to sample with cfg, or goes on with it.
func (a *agent) sample(cfg oncpu.Config) {
	cpu := oncpu.New(cfg, a.losses.Lost)
	a.cpu.Store(cpu)
	a.runner.Set(cpu)
}

// run starts the parts, waits, and stops them in the order in which samples flow, so that
// none is put where nobody takes it any more.
func (a *agent) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	parts := newParts(context.WithoutCancel(ctx), stop)

	if a.cfg.HTTP != "" {
		l, err := listen(a.cfg.HTTP)
		if err != nil {
			return err
		}
		a.log.Info("metrics and health", "url", "http://"+l.Addr().String()+"/metrics")
		defer parts.start(func(ctx context.Context) error { return a.serve(ctx, l) })()
	}
	if a.session != nil {
		defer parts.start(a.session.Run)()
		defer a.sendLast(ctx)
		a.captures.start(ctx)
		defer a.captures.wait()
	}
	defer parts.start(func(ctx context.Context) error { a.pipeline.Run(ctx); return nil })()
	defer parts.start(a.runner.Run)()

	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (a *agent) sendLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if a.session.Flush(ctx) == nil {
		return
	}
	left := a.session.Stats().Spool
	if left.InMemory {
		a.log.Warn("what was not sent is lost with the agent: its data folder cannot be written", "batches", left.Batches, "data", a.cfg.Uplink.Data)
		return
	}
	a.log.Info("what was not sent stays in the spool and goes out with the next start", "batches", left.Batches)
}

// push encodes a window and hands it to the session.
func (a *agent) push(w Window) {
	if a.session == nil || (len(w.Records) == 0 && len(w.Readings) == 0 && len(w.Losses) == 0) {
		return
	}
	b := &diagonv1.Batch{
		StartUnixNano: w.Start.UnixNano(),
		EndUnixNano:   w.End.UnixNano(),
		Samples:       w.Samples,
		Readings:      readingsToWire(w.Readings),
		Losses:        lossesToWire(w.Losses),
	}
	if len(w.Records) > 0 {
		raw, err := pprofio.Marshal(&w.Batch, a.meta)
		if err != nil {
			a.losses.Lost("encode", w.Samples)
			a.log.Error("a window is lost", "samples", w.Samples, "error", err)
			return
		}
		b.ProfileZstd = a.zstd.EncodeAll(raw, nil)
	}
	// What cannot be spooled is counted and logged by the session.
	_ = a.session.PushBatch(b)
}

func readingsToWire(readings []profile.Reading) []*diagonv1.Reading {
	out := make([]*diagonv1.Reading, len(readings))
	for i, r := range readings {
		labels := make([]*diagonv1.Label, len(r.Labels))
		for j, l := range r.Labels {
			labels[j] = &diagonv1.Label{Name: l.Name, Value: l.Value}
		}
		out[i] = &diagonv1.Reading{TimeUnixNano: r.Time.UnixNano(), Metric: r.Metric, Labels: labels, Value: r.Value}
	}
	return out
}

func lossesToWire(losses []profile.Loss) []*diagonv1.Loss {
	out := make([]*diagonv1.Loss, len(losses))
	for i, l := range losses {
		out[i] = &diagonv1.Loss{Place: l.Place, Count: l.Count}
	}
	return out
}
