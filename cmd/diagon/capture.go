// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"diagon.dev/diagon/cmd/diagon/internal/client"
	"diagon.dev/diagon/cmd/diagon/internal/text"
)

func newCaptureCommand() *cobra.Command {
	var request client.CaptureRequest
	duration, out := 10*time.Second, "diagon.pb.gz"
	cmd := &cobra.Command{
		Use:   "capture --node NODE... [--kind cpu] [--duration 10s] [--pid N]... [-o FILE]",
		Short: "Have nodes take a close look, and fetch what they saw",
		Long: `capture asks nodes for a close look through the server, follows how it goes, and fetches
the files. Ctrl-C cancels it on the nodes. The exit status is 0 only when every node succeeded.`,
		Example: `  diagon capture --node worker-3 --duration 10s -o out.pb.gz
  diagon capture --node worker-3 --node worker-4 -o out.pb.gz    out.worker-3.pb.gz, out.worker-4.pb.gz
  diagon capture list`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&request.Targets.Nodes, "node", nil, "`node` to look at; may be repeated")
	flags.StringVar(&request.Kind, "kind", "cpu", "`kind` of capture")
	flags.DurationVarP(&duration, "duration", "d", duration, "how long")
	flags.IntSliceVarP(&request.Targets.PIDs, "pid", "p", nil, "only this `process` of the node; may be repeated")
	flags.IntVar(&request.Hz, "rate", 99, "samples a second on each CPU; 0 leaves it to the node")
	flags.StringVarP(&out, "out", "o", out, "`file` to write; with several nodes, each one's name comes before its end")
	open := serverSetting(cmd)
	cmd.RunE = withServer(open, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if len(request.Targets.Nodes) == 0 {
			return usagef("capture: which node? name it with --node (`diagon nodes` lists them)")
		}
		if duration <= 0 {
			return usagef("capture: --duration: %v is no time", duration)
		}
		if out == stdoutName {
			return usagef("capture: -o: name a file")
		}
		request.Duration = duration.String()
		f := &follower{client: c, stderr: text.Writer(cmd.ErrOrStderr()), out: out}
		return wrap("capture", f.run(cmd.Context(), request))
	})
	cmd.AddCommand(newCaptureListCommand(), newCaptureShowCommand(), newCaptureCancelCommand())
	return cmd
}

const (
	askEvery   = 300 * time.Millisecond
	patience   = 30 * time.Second // beyond the capture's deadline, and without any answer
	cancelTime = 10 * time.Second
)

// A follower starts a capture and stays with it to its end.
type follower struct {
	client *client.Client
	stderr io.Writer
	out    string
	said   map[string]string // what was last said of each node
}

func (f *follower) run(ctx context.Context, request client.CaptureRequest) error {
	if err := checkWritable(f.out); err != nil {
		return err
	}
	capture, err := f.client.Start(ctx, request)
	if err != nil {
		return err
	}
	fmt.Fprintf(f.stderr, "capture %s\n", capture.ID)
	capture, err = f.follow(ctx, capture)
	if errors.Is(err, context.Canceled) {
		return f.cancel(capture)
	}
	if err != nil {
		return err
	}
	if err := f.fetch(ctx, capture); err != nil {
		return err
	}
	if len(capture.Targets) > 1 {
		fmt.Fprintf(f.stderr, "%s: %s\n", capture.State, capture.Message)
	}
	if capture.State != client.Succeeded {
		return exitStatus(exitFailure)
	}
	return nil
}

// checkWritable says before the nodes begin that the result would have no place.
func checkWritable(name string) error {
	probe, err := create(name, "", nil)
	if err != nil {
		return err
	}
	probe.abandon()
	return nil
}

// follow asks until the state is final. A server that is away for a moment is waited for.
func (f *follower) follow(ctx context.Context, c client.Capture) (client.Capture, error) {
	f.said = make(map[string]string)
	silent := time.Time{} // since when no answer has come
	for {
		f.tell(c)
		if c.Final() {
			return c, nil
		}
		if time.Now().After(c.Deadline.Add(patience)) {
			return c, fmt.Errorf("%s should have ended at %s and has not; `diagon capture show %s` tells how it goes on", c.ID, c.Deadline.Format(time.TimeOnly), c.ID)
		}
		select {
		case <-ctx.Done():
			return c, context.Canceled
		case <-time.After(askEvery):
		}
		now, err := f.client.Capture(ctx, c.ID)
		switch {
		case err == nil:
			c, silent = now, time.Time{}
		case errors.Is(err, context.Canceled):
			return c, err
		case !errors.Is(err, client.ErrUnreachable):
			return c, err
		case silent.IsZero():
			silent = time.Now()
			fmt.Fprintln(f.stderr, "no answer for the moment:", err)
		case time.Since(silent) > patience:
			return c, err
		}
	}
}

// tell prints each node's state, with its sentence, when it has changed.
func (f *follower) tell(c client.Capture) {
	for _, t := range c.Targets {
		now := fmt.Sprintf("%-9s  %s", t.State, t.Message)
		if f.said[t.Node] != now {
			f.said[t.Node] = now
			fmt.Fprintf(f.stderr, "%s  %s\n", t.Node, now)
		}
	}
}

// cancel has its own time: the caller's is over.
func (f *follower) cancel(c client.Capture) error {
	ctx, stop := context.WithTimeout(context.Background(), cancelTime)
	defer stop()
	got, err := f.client.Cancel(ctx, c.ID)
	if err != nil {
		return fmt.Errorf("interrupted, and %s could not be cancelled: %w", c.ID, err)
	}
	f.tell(got)
	fmt.Fprintf(f.stderr, "interrupted: %s is cancelled\n", c.ID)
	return exitStatus(exitFailure)
}

// fetch downloads every file. One alone gets the name that was asked for.
func (f *follower) fetch(ctx context.Context, c client.Capture) error {
	several := len(c.Targets) > 1
	for _, t := range c.Targets {
		for _, a := range t.Artifacts {
			name := f.out
			if several || len(t.Artifacts) > 1 {
				name = artifactFile(f.out, t, a)
			}
			if err := f.download(ctx, c.ID, a, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// artifactFile puts the node before the end of a name: out.NODE.pb.gz. Where a node has
// several files, each also keeps its own name.
func artifactFile(out string, t client.Target, a client.Artifact) string {
	dir, base := "", out
	if i := strings.LastIndexByte(out, '/'); i >= 0 {
		dir, base = out[:i+1], out[i+1:]
	}
	stem, end, dotted := strings.Cut(base, ".")
	if dotted {
		end = "." + end
	}
	part := t.Node
	if len(t.Artifacts) > 1 {
		part, end = a.Name, ""
	}
	return dir + stem + "." + strings.ReplaceAll(part, "/", "_") + end
}

func (f *follower) download(ctx context.Context, id string, a client.Artifact, name string) error {
	file, err := create(name, "", nil)
	if err != nil {
		return err
	}
	defer file.abandon()
	if err := file.fill(func(w io.Writer) error { return f.client.Download(ctx, id, a, w) }); err != nil {
		return err
	}
	fmt.Fprintf(f.stderr, "wrote %s, %s\n", name, bytesText(a.Size))
	if strings.HasSuffix(a.Name, ".pb.gz") {
		fmt.Fprintf(f.stderr, "  open     go tool pprof -http=: %s\n", shellWord(name))
	}
	return nil
}
