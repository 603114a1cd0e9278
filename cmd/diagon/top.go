// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"diagon.dev/diagon/cmd/diagon/internal/top"
)

// topOptions are what a person decides about a live table.
type topOptions struct {
	watch     top.Config
	rounds    int // 0: until interrupted
	rows      int // of each table written as text
	processes bool
}

func newTopCommand() *cobra.Command {
	o := topOptions{watch: top.DefaultConfig(), rows: 20}
	var once bool
	cmd := &cobra.Command{
		Use:   "top [--pid N]... [--once | -n ROUNDS]",
		Short: "Show the hottest functions, live",
		Long: `top samples this host and shows the hottest functions or, by the key p, processes. Without a
terminal, and with --once or -n, it prints tables as text.

SELF is CPU time in the function itself, TOTAL also in what it called, both as a share of the
CPU time seen; CPU of a process is a share of one CPU.`,
		Args: noArguments,
	}
	flags := cmd.Flags()
	flags.IntVar(&o.watch.Hz, "rate", o.watch.Hz, "samples a second on each CPU, 1 to 999")
	flags.DurationVarP(&o.watch.Interval, "interval", "i", o.watch.Interval, "between two tables")
	flags.IntSliceVarP(&o.watch.PIDs, "pid", "p", nil, "watch only this `process` and its children to come; may be repeated")
	flags.BoolVar(&o.processes, "processes", false, "show processes first")
	flags.BoolVar(&once, "once", false, "print one table and end")
	flags.IntVarP(&o.rounds, "rounds", "n", 0, "print that many tables and end")
	flags.IntVar(&o.rows, "rows", o.rows, "lines of each printed table; 0 prints all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if once && o.rounds > 0 {
			return usagef("top: --once is -n 1; give one of them")
		}
		if once {
			o.rounds = 1
		}
		if o.rounds < 0 || o.rows < 0 {
			return usagef("top: -n and --rows count from 0")
		}
		if err := o.watch.Validate(); err != nil {
			return usagef("top: --%w", err)
		}
		if err := checkProcesses(o.watch.PIDs); err != nil {
			return wrap("top", err)
		}
		if f, ok := cmd.OutOrStdout().(*os.File); ok && isTerminal(f) && o.rounds == 0 {
			return wrap("top", topScreen(cmd.Context(), o, f))
		}
		return wrap("top", topText(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
	}
	return cmd
}

func (o topOptions) by() top.By {
	if o.processes {
		return top.ByProcess
	}
	return top.ByFunction
}

func (o topOptions) what() string {
	subject := "this host"
	if n := len(o.watch.PIDs); n == 1 {
		subject = fmt.Sprintf("process %d", o.watch.PIDs[0])
	} else if n > 1 {
		subject = fmt.Sprintf("%d processes", n)
	}
	return fmt.Sprintf("%s at %d Hz", subject, o.watch.Hz)
}

// topText writes table after table.
func topText(ctx context.Context, o topOptions, stdout, stderr io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	rows, round := o.rows, 0
	if rows == 0 {
		rows = int(^uint(0) >> 1)
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var written error
	err := top.Watch(ctx, o.watch, log, func(t top.Table) {
		if round++; o.rounds > 0 && round > o.rounds {
			return
		}
		var b strings.Builder
		if round > 1 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, t.Head(runtime.NumCPU()))
		fmt.Fprintln(&b, t.Title(o.by(), 0))
		for _, line := range t.Lines(o.by(), rows, 0) {
			fmt.Fprintln(&b, line)
		}
		if _, written = io.WriteString(stdout, b.String()); written != nil || round == o.rounds {
			stop()
		}
	})
	return errors.Join(err, written)
}

// topScreen shows the live table until a key or a signal ends it.
func topScreen(ctx context.Context, o topOptions, terminal *os.File) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	screen := tea.NewProgram(top.NewScreen(o.what(), runtime.NumCPU(), o.by()),
		tea.WithOutput(terminal), tea.WithoutSignalHandler(), tea.WithContext(ctx))

	watched := make(chan error, 1)
	go func() {
		// A log line would tear the screen: what is lost is shown in its head.
		err := top.Watch(watching, o.watch, slog.New(slog.DiscardHandler), func(t top.Table) { screen.Send(t) })
		watched <- err
		if err != nil {
			screen.Quit()
		}
	}()
	_, err := screen.Run()
	stop()
	if watchErr := <-watched; watchErr != nil {
		return watchErr
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
