// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress tells a person that something is being recorded: by a bar on a terminal that is
// the person's alone, else by one line.
type progress struct {
	w        io.Writer
	what     string
	duration time.Duration
	bar      bool
	begun    chan struct{}
	quit     chan struct{}
	stopped  chan struct{}
}

func newProgress(w io.Writer, o recordOptions) *progress {
	p := &progress{
		w: w, duration: o.duration, what: what(o),
		begun: make(chan struct{}), quit: make(chan struct{}), stopped: make(chan struct{}),
		// A command writes to the same terminal, and a bar would overwrite it.
		bar: isTerminal(w) && len(o.command) == 0,
	}
	go p.run()
	return p
}

// what is being recorded, as in "recording this host at 99 Hz for 10s".
func what(o recordOptions) string {
	subject := "this host"
	switch {
	case len(o.command) > 0:
		subject = o.command[0]
	case len(o.pids) == 1:
		subject = fmt.Sprintf("process %d", o.pids[0])
	case len(o.pids) > 1:
		subject = fmt.Sprintf("%d processes", len(o.pids))
	}
	text := fmt.Sprintf("recording %s at %d Hz", subject, o.hz)
	if o.duration > 0 {
		text += " for " + durationText(o.duration)
	}
	return text
}

// durationText is 1m30s, and 1m rather than 1m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// begin says that sampling has begun. It is called once, from any goroutine.
func (p *progress) begin() { close(p.begun) }

// end takes the bar away.
func (p *progress) end() {
	close(p.quit)
	<-p.stopped
}

func (p *progress) run() {
	defer close(p.stopped)
	select {
	case <-p.begun:
	case <-p.quit:
		return
	}
	if p.bar {
		p.draw(time.Now())
		return
	}
	fmt.Fprintln(p.w, p.what)
}

func (p *progress) draw(start time.Time) {
	bar := progressbar.NewOptions64(p.duration.Milliseconds(),
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetDescription(p.what+"; Ctrl-C ends it"),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetWidth(24),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░"}),
	)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.quit:
			bar.Finish()
			return
		case <-tick.C:
			bar.Set64(min(time.Since(start).Milliseconds(), p.duration.Milliseconds()-1))
		}
	}
}
