// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

// broken is a collector that breaks one promise, chosen by name.
type broken string

func (b broken) Name() string { return string(b) }

func (b broken) Run(ctx context.Context, out collector.Sink) error {
	switch b {
	case "talks after it returned":
		go func() {
			for range 10 {
				time.Sleep(runFor / 5)
				out.Put(profile.Sample{})
			}
		}()
	case "leaves a goroutine":
		go func() { select {} }()
	case "leaves a file":
		if _, err := os.Open("/proc/self/stat"); err != nil {
			return err
		}
		pinned = append(pinned, listen())
	case "does not stop":
		select {}
	case "calls its end a failure":
		<-ctx.Done()
		return ctx.Err()
	case "does not look at its context":
		time.Sleep(runFor + patience + time.Second)
	case "is not available":
		return fmt.Errorf("%w: no such device", collector.ErrUnavailable)
	}
	<-ctx.Done()
	return nil
}

var pinned []net.Listener // not for the garbage collector to close

func listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return l
}

// TestPromises runs the suite in a process of its own on a collector that
// breaks a promise, since a suite that fails fails its test.
func TestPromises(t *testing.T) {
	if which := os.Getenv("DIAGON_BROKEN"); which != "" {
		Promises(t, broken(which))
		return
	}
	for _, tt := range []struct{ broken, fails string }{
		{broken: "nothing", fails: ""},
		{broken: "is not available", fails: ""},
		{broken: "talks after it returned", fails: "came after Run had returned"},
		{broken: "leaves a goroutine", fails: "found unexpected goroutines"},
		{broken: "leaves a file", fails: `more of "socket:" than before Run`},
		{broken: "does not stop", fails: "still runs 5s after"},
		{broken: "calls its end a failure", fails: "want nil once its context is done"},
		{broken: "does not look at its context", fails: "still runs 5s after"},
	} {
		t.Run(tt.broken, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPromises$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), "DIAGON_BROKEN="+tt.broken)
			out, err := cmd.CombinedOutput()
			if tt.fails == "" {
				if err != nil {
					t.Errorf("the suite fails: %v\n%s", err, out)
				}
				return
			}
			if err == nil || !strings.Contains(string(out), tt.fails) {
				t.Errorf("the suite says\n%s\nwant a failure saying %q", out, tt.fails)
			}
		})
	}
}
