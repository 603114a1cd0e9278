// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
	"diagon.dev/diagon/pkg/uplink"
)

// Captures carries out a server's orders to look closer. One capture of kind "cpu" runs at a
// time, since two would count each other's cost; a second is answered BUSY.
type Captures struct {
	names    Names
	ceilings Ceilings
	meta     pprofio.Meta
	dir      string // results wait here for their upload
	proc     string
	link     captureLink
	log      *slog.Logger

	mu      sync.Mutex
	ctx     context.Context // ends with the agent
	running *capture        // nil: none
	known   map[string]context.CancelCauseFunc
	wg      sync.WaitGroup
}

// captureLink is what Captures needs of the uplink.
type captureLink interface {
	ReportCapture(*diagonv1.CaptureUpdate)
	UploadArtifact(context.Context, uplink.Artifact) error
}

// A capture is one order in work.
type capture struct {
	id  string
	end time.Time
}

// These are the reasons for which a capture's context ends.
var (
	errCancelled = errors.New("cancelled")
	errExpired   = errors.New("deadline passed")
)

// uploadTime bounds the upload of a result whose order has no deadline.
const uploadTime = 10 * time.Minute

// Capture begins an order, or says why not. It does not wait.
func (c *Captures) Capture(order *diagonv1.CaptureRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil || c.ctx.Err() != nil {
		return // the agent is stopping: the server sends the order again to the next one
	}
	if _, again := c.known[order.GetId()]; again {
		return
	}
	rec, note, err := c.accept(order)
	if err != nil {
		c.report(order.GetId(), diagonv1.CaptureState_CAPTURE_STATE_REFUSED, err.Error())
		return
	}
	if c.running != nil {
		c.report(order.GetId(), diagonv1.CaptureState_CAPTURE_STATE_BUSY,
			fmt.Sprintf("capture %s samples this node until %s", c.running.id, c.running.end.Format(time.TimeOnly)))
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.known[order.GetId()] = cancel
	c.running = &capture{id: order.GetId(), end: startOf(order).Add(rec.Duration)}
	c.wg.Go(func() {
		defer cancel(nil)
		state, message, artifacts := c.run(ctx, order, rec, note)
		c.mu.Lock()
		c.running = nil
		delete(c.known, order.GetId())
		c.mu.Unlock()
		c.report(order.GetId(), state, message, artifacts...)
	})
}

// Cancel ends a capture that is waiting or running; any other is not this agent's any more.
func (c *Captures) Cancel(id, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.known[id]; ok {
		cancel(fmt.Errorf("%w: %s", errCancelled, reason))
	}
}

// start lets orders in; stop ends all that runs and waits for it.
func (c *Captures) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
	c.known = make(map[string]context.CancelCauseFunc)
}

func (c *Captures) wait() { c.wg.Wait() }

// accept turns an order into a recording within the node's ceilings. The note says what was clamped.
func (c *Captures) accept(order *diagonv1.CaptureRequest) (rec Recording, note string, err error) {
	if !c.ceilings.allows(order.GetKind()) {
		return rec, "", fmt.Errorf("this node takes no captures of kind %q; it allows: %v", order.GetKind(), c.ceilings.Kinds)
	}
	asked := time.Duration(order.GetDurationMs()) * time.Millisecond
	if asked <= 0 {
		return rec, "", errors.New("a duration of 0 captures nothing")
	}
	hz := defaultCaptureHz
	if text, ok := order.GetOptions()["hz"]; ok {
		if hz, err = strconv.Atoi(text); err != nil || hz < 1 {
			return rec, "", fmt.Errorf("option hz: %q is not a rate", text)
		}
	}
	var pids []int
	for _, pid := range order.GetPids() {
		if _, err := os.Stat(filepath.Join(c.proc, strconv.FormatInt(pid, 10))); err != nil {
			return rec, "", fmt.Errorf("process %d does not exist on this node", pid)
		}
		pids = append(pids, int(pid))
	}
	hz, clampedRate := c.ceilings.rate(hz)
	duration, clampedDuration := c.ceilings.duration(asked)
	return Recording{Hz: hz, PIDs: pids, Duration: duration}, sentence(clampedRate, clampedDuration), nil
}

// defaultCaptureHz is the rate of a capture that names none.
const defaultCaptureHz = 99

func startOf(order *diagonv1.CaptureRequest) time.Time {
	now := time.Now()
	if start := time.Unix(0, order.GetStartUnixNano()); start.After(now) {
		return start
	}
	return now
}

// run takes the capture to its end and says how that was.
func (c *Captures) run(ctx context.Context, order *diagonv1.CaptureRequest, rec Recording, note string) (diagonv1.CaptureState, string, []string) {
	deadline := time.Now().Add(rec.Duration + uploadTime)
	if at := order.GetDeadlineUnixNano(); at > 0 {
		deadline = time.Unix(0, at)
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errExpired)
	defer cancel()

	if wait := time.Until(startOf(order)); wait > 0 {
		c.report(order.GetId(), diagonv1.CaptureState_CAPTURE_STATE_PENDING, sentence("waits for the common start", note))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ended(ctx, "before it started")
		}
	}
	rec.Ready = func() {
		c.report(order.GetId(), diagonv1.CaptureState_CAPTURE_STATE_RUNNING,
			sentence(fmt.Sprintf("samples at %d Hz for %v", rec.Hz, rec.Duration), note))
	}
	w, err := Record(ctx, c.names, rec)
	switch {
	case ctx.Err() != nil:
		return ended(ctx, "while it was sampling")
	case errors.Is(err, collector.ErrUnavailable):
		return diagonv1.CaptureState_CAPTURE_STATE_REFUSED, err.Error(), nil
	case err != nil:
		return diagonv1.CaptureState_CAPTURE_STATE_FAILED, err.Error(), nil
	case w.Samples == 0:
		return diagonv1.CaptureState_CAPTURE_STATE_EMPTY, sentence(emptyBecause(rec), note), nil
	}
	name := order.GetKind() + ".pb.gz"
	if err := c.deliver(ctx, order.GetId(), name, &w.Batch); err != nil {
		if ctx.Err() != nil {
			return ended(ctx, "while its result was uploaded")
		}
		return diagonv1.CaptureState_CAPTURE_STATE_FAILED, err.Error(), nil
	}
	return diagonv1.CaptureState_CAPTURE_STATE_SUCCEEDED, sentence(summary(w), note), []string{name}
}

// ended tells a cancelled capture from an expired one and from an agent that stops.
func ended(ctx context.Context, when string) (diagonv1.CaptureState, string, []string) {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errCancelled):
		return diagonv1.CaptureState_CAPTURE_STATE_CANCELLED, cause.Error(), nil
	case errors.Is(cause, errExpired):
		return diagonv1.CaptureState_CAPTURE_STATE_EXPIRED, "the deadline passed " + when, nil
	default:
		return diagonv1.CaptureState_CAPTURE_STATE_FAILED, "the agent stopped " + when, nil
	}
}

func emptyBecause(rec Recording) string {
	if len(rec.PIDs) > 0 {
		return fmt.Sprintf("processes %v were on no CPU in %v", rec.PIDs, rec.Duration)
	}
	return fmt.Sprintf("every CPU was idle for %v", rec.Duration)
}

func summary(w Window) string {
	text := fmt.Sprintf("%d samples in %v", w.Samples, w.End.Sub(w.Start).Round(time.Millisecond))
	for _, l := range w.Losses {
		text += fmt.Sprintf("; lost %d at %s", l.Count, l.Place)
	}
	return text
}

// deliver writes the result to disk, uploads it, and removes it.
func (c *Captures) deliver(ctx context.Context, id, name string, b *profile.Batch) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	f, err := os.CreateTemp(c.dir, "capture-*.pb.gz")
	if err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	defer os.Remove(f.Name())
	err = pprofio.Encode(f, b, c.meta)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	err = c.link.UploadArtifact(ctx, uplink.Artifact{
		CaptureID: id, Name: name, ContentType: "application/vnd.google.protobuf+gzip", Path: f.Name(),
	})
	if err != nil {
		return fmt.Errorf("upload the result: %w", err)
	}
	return nil
}

func (c *Captures) report(id string, state diagonv1.CaptureState, message string, artifacts ...string) {
	c.log.Info("capture", "id", id, "state", state.String(), "message", message)
	c.link.ReportCapture(&diagonv1.CaptureUpdate{Id: id, State: state, Message: message, Artifacts: artifacts})
}
