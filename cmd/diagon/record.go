// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/agent"
	"diagon.dev/diagon/pkg/profile/pprofio"
)

// recordOptions are what a person decides about a recording.
type recordOptions struct {
	duration time.Duration // 0: until the command ends
	pids     []int
	command  []string
	hz       int
	out      string
	format   string // "": by the name of out
}

const wholeHostDuration = 10 * time.Second

func newRecordCommand() *cobra.Command {
	o := recordOptions{hz: 99, out: "diagon.pb.gz"}
	cmd := &cobra.Command{
		Use:   "record [-d 10s] [--pid N]... [-o FILE] [-- COMMAND ARGS...]",
		Short: "Record what the CPUs run, into a file",
		Long: `record samples this host, some of its processes, or one command with its children, and
writes a profile. No server is needed.

A command is sampled from its first instruction until it ends, and its exit status becomes
that of diagon. With -d the recording ends earlier and the command runs on. A recording of
chosen processes ends early when they and what they forked meanwhile have ended. Ctrl-C ends
the recording; what was seen until then is written.`,
		Example: `  diagon record -d 10s                  this host for 10 seconds
  diagon record --pid 4711 -d 30s       one process and what it forks
  diagon record -o job.pb.gz -- ./job   a command, until it ends
  go tool pprof -http=: diagon.pb.gz    look at it`,
	}
	flags := cmd.Flags()
	flags.DurationVarP(&o.duration, "duration", "d", 0, "how long (default 10s; with a command, until it ends)")
	flags.IntSliceVarP(&o.pids, "pid", "p", nil, "sample only this `process` and its children to come; may be repeated")
	flags.IntVar(&o.hz, "rate", o.hz, "samples a second on each CPU, 1 to 999")
	flags.StringVarP(&o.out, "out", "o", o.out, "`file` to write: .pb.gz for pprof, .folded or .txt for folded stacks; - is standard output")
	flags.StringVar(&o.format, "format", "", "pprof or folded (default: by the file's name)")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch dash := cmd.ArgsLenAtDash(); {
		case len(args) == 0 && dash < 0:
			return nil
		case dash != 0:
			return usagef("record: %q: a command stands behind --, as in `diagon record -- %s`", args[0], strings.Join(args, " "))
		case len(args) == 0:
			return usagef("record: no command stands behind --")
		}
		o.command = args
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.complete(flags.Changed("duration")); err != nil {
			return usageError{fmt.Errorf("record: %w", err)}
		}
		return wrap("record", record(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
	}
	return cmd
}

// complete fills in what follows from the rest, or says what does not go together.
func (o *recordOptions) complete(durationGiven bool) error {
	if o.hz < 1 || o.hz > 999 {
		return fmt.Errorf("--rate: %d is not between 1 and 999", o.hz)
	}
	if o.duration < 0 || (durationGiven && o.duration == 0) {
		return fmt.Errorf("-d: %v is no time", o.duration)
	}
	if !durationGiven && len(o.command) == 0 {
		o.duration = wholeHostDuration
	}
	if len(o.pids) > 0 && len(o.command) > 0 {
		return errors.New("choose processes by --pid, or start a command, not both")
	}
	if len(o.command) > 0 && o.out == stdoutName {
		return errors.New("-o -: the command and the profile would both write to standard output; name a file")
	}
	format, err := formatOf(o.out, o.format)
	o.format = format
	return err
}

// record samples, writes, and says what came of it.
func record(ctx context.Context, o recordOptions, stdout, stderr io.Writer) error {
	if err := checkProcesses(o.pids); err != nil {
		return err
	}
	out, err := create(o.out, o.format, stdout)
	if err != nil {
		return err
	}
	defer out.abandon()

	var naming agent.Losses
	names, err := agent.OpenNames("/proc", naming.Lost, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer names.Close()

	sampling, stop := context.WithCancel(ctx)
	defer stop()
	r := agent.Recording{Hz: o.hz, PIDs: o.pids, Duration: o.duration}
	var command *held
	if len(o.command) > 0 {
		if command, err = hold(o.command); err != nil {
			fmt.Fprintln(stderr, "diagon: record:", err)
			return startStatus(err)
		}
		defer command.abandon()
		defer passOn(unix.SIGTERM, command)()
		r.PIDs = []int{command.cmd.Process.Pid}
		go func() { <-command.done; stop() }()
	}
	gone := make(chan bool, 1)
	if len(o.pids) > 0 {
		go func() {
			ended := untilGone(sampling, o.pids)
			gone <- ended
			if ended {
				stop()
			}
		}()
	} else {
		gone <- false
	}
	progress := newProgress(stderr, o)
	r.Ready = func() {
		progress.begin()
		if command != nil {
			command.release()
		}
	}
	before := usedBy(r.PIDs)
	window, err := agent.Record(sampling, names, r)
	progress.end()
	stop()
	ended := <-gone
	if err != nil {
		return err
	}
	window.Losses = addLosses(window.Losses, naming.Total())

	if window.Samples == 0 {
		fmt.Fprintf(stderr, "no samples, nothing written: %s\n", whyNone(o, window, before, command))
		if command == nil {
			return exitStatus(exitFailure)
		}
		return o.await(command, stderr)
	}
	if ended {
		fmt.Fprintln(stderr, goneText(o.pids))
	}
	if err := out.write(&window.Batch, meta()); err != nil {
		return err
	}
	describe(stderr, o, window, out)
	if command == nil {
		return nil
	}
	return o.await(command, stderr)
}

// await waits for a command that runs longer than its recording, and passes its status on.
func (o recordOptions) await(command *held, stderr io.Writer) error {
	select {
	case <-command.done:
	default:
		fmt.Fprintf(stderr, "%s runs on as process %d; waiting for it to end\n", command.name, command.cmd.Process.Pid)
		<-command.done
	}
	status := command.status()
	if status == 0 {
		return nil
	}
	fmt.Fprintf(stderr, "%s ended with status %d\n", command.name, status)
	return exitStatus(status)
}

// passOn hands a signal on to the command. SIGINT needs none of that: the terminal sends
// it to both.
func passOn(sig os.Signal, command *held) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, sig)
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				command.cmd.Process.Signal(s) // fails when it has ended: nothing is left to do
			case <-quit:
				return
			}
		}
	}()
	return func() { signal.Stop(signals); close(quit) }
}

// meta says where a profile comes from.
func meta() pprofio.Meta {
	node, _ := os.Hostname()
	bootID, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return pprofio.Meta{Node: node, AgentVersion: version, BootID: strings.TrimSpace(string(bootID))}
}
