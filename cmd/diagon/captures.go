// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"diagon.dev/diagon/cmd/diagon/internal/client"
	"diagon.dev/diagon/cmd/diagon/internal/text"
)

func newCaptureListCommand() *cobra.Command {
	limit := 20
	cmd := &cobra.Command{Use: "list", Short: "List captures, the newest first", Args: noArguments}
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "how many")
	open := serverSetting(cmd)
	cmd.RunE = withServer(open, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		captures, err := c.Captures(cmd.Context(), limit)
		if err != nil {
			return wrap("capture", err)
		}
		if len(captures) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "no captures yet; `diagon capture --node NODE` takes one")
			return nil
		}
		t := newTable("ID", "CREATED", "KIND", "STATE", "NODES", "MESSAGE")
		for _, one := range captures {
			t.add(one.ID, ago(one.Created, time.Now()), one.Kind, one.State, nodesOf(one), one.Message)
		}
		return t.write(cmd.OutOrStdout())
	})
	return cmd
}

// nodesOf names the nodes, or the first few of many.
func nodesOf(c client.Capture) string {
	const most = 3
	var names []string
	for _, t := range c.Targets[:min(most, len(c.Targets))] {
		names = append(names, t.Node)
	}
	text := strings.Join(names, ",")
	if more := len(c.Targets) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func newCaptureShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show ID", Short: "Show how each node of a capture fares", Args: oneID}
	open := serverSetting(cmd)
	cmd.RunE = withServer(open, func(cmd *cobra.Command, c *client.Client, args []string) error {
		capture, err := c.Capture(cmd.Context(), args[0])
		if err != nil {
			return wrap("capture", err)
		}
		return showCapture(cmd, capture)
	})
	return cmd
}

func newCaptureCancelCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cancel ID", Short: "End a capture", Args: oneID}
	open := serverSetting(cmd)
	cmd.RunE = withServer(open, func(cmd *cobra.Command, c *client.Client, args []string) error {
		capture, err := c.Cancel(cmd.Context(), args[0])
		if err != nil {
			return wrap("capture", err)
		}
		return showCapture(cmd, capture)
	})
	return cmd
}

func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("capture %s: wants the id of one capture (`diagon capture list` shows them)", cmd.Name())
	}
	return nil
}

func showCapture(cmd *cobra.Command, c client.Capture) error {
	w := text.Writer(cmd.OutOrStdout())
	rate := "as the node likes"
	if c.Hz > 0 {
		rate = fmt.Sprintf("%d Hz", c.Hz)
	}
	fmt.Fprintf(w, "%s  %s for %v at %s\n%s: %s\n\n", c.ID, c.Kind, time.Duration(c.DurationMS)*time.Millisecond, rate, c.State, c.Message)
	t := newTable("NODE", "STATE", "FILES", "MESSAGE")
	for _, target := range c.Targets {
		var files []string
		for _, a := range target.Artifacts {
			files = append(files, fmt.Sprintf("%s (%s)", a.Name, bytesText(a.Size)))
		}
		if len(files) == 0 {
			files = []string{"-"}
		}
		t.add(target.Node, target.State, strings.Join(files, ", "), target.Message)
	}
	return t.write(w)
}
