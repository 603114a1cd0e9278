// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diagon.dev/diagon/cmd/diagon/internal/client"
	"diagon.dev/diagon/cmd/diagon/internal/losses"
	"diagon.dev/diagon/cmd/internal/config"
)

// serverSetting declares --server on a command and returns what opens a client of it. The
// address may also come from DIAGON_SERVER or a file.
func serverSetting(cmd *cobra.Command) func() (*client.Client, error) {
	own := pflag.NewFlagSet("server", pflag.ContinueOnError)
	server := own.String("server", client.DefaultServer, "`address` of the diagon-server; also DIAGON_SERVER")
	set := config.New(own, "DIAGON")
	own.Lookup("config").Usage = "read the server's address from this YAML `file`"
	cmd.Flags().AddFlagSet(own)
	return func() (*client.Client, error) {
		// Where an agent runs, its variables are set too, and are none of this command's.
		if _, err := set.Load([]string{"DIAGON_SERVER=" + os.Getenv("DIAGON_SERVER")}); err != nil {
			return nil, usageError{err}
		}
		if set.PrintOnly() {
			return nil, printSettings{set}
		}
		c, err := client.New(*server)
		if err != nil {
			return nil, usagef("%w (set by %s)", err, set.Origin("server"))
		}
		return c, nil
	}
}

// printSettings is returned instead of a client when only the settings are asked for.
type printSettings struct{ set *config.Set }

func (printSettings) Error() string { return "settings were asked for" }

func newNodesCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "nodes [-o json]",
		Short: "List the nodes that a server knows",
		Args:  noArguments,
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	open := serverSetting(cmd)
	cmd.RunE = withServer(open, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if format != "text" && format != "json" {
			return usagef("nodes: -o: %q is neither text nor json", format)
		}
		nodes, raw, err := c.Nodes(cmd.Context())
		if err != nil {
			return wrap("nodes", err)
		}
		if format == "json" {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", raw)
			return err
		}
		if len(nodes) == 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s knows no node; start `diagon agent --channel HOST:PORT/diagnostics` on one\n", c.Server())
			return nil
		}
		return writeNodes(cmd.OutOrStdout(), nodes, time.Now())
	})
	return cmd
}

// withServer opens the client before the verb runs.
func withServer(open func() (*client.Client, error), verb func(*cobra.Command, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := open()
		if settings, ok := err.(printSettings); ok {
			return settings.set.Print(cmd.OutOrStdout())
		}
		if err != nil {
			return err
		}
		return verb(cmd, c, args)
	}
}

func writeNodes(w io.Writer, nodes []client.Node, now time.Time) error {
	slices.SortFunc(nodes, func(a, b client.Node) int { return cmp.Compare(a.Name, b.Name) })
	t := newTable("NODE", "CONNECTED", "HEARTBEAT", "HEALTH", "VERSION", "KERNEL", "MISSING", "LOST", "WITHOUT NAMES")
	for _, n := range nodes {
		connected := "yes"
		if !n.Connected {
			connected = "no"
		}
		health := cmp.Or(n.Health.Status, "unknown")
		if n.Health.Message != "" {
			health += ": " + n.Health.Message
		}
		t.add(n.Name, connected, ago(n.LastHeartbeat, now), health, cmp.Or(n.AgentVersion, "-"), cmp.Or(n.Host["kernel"], "-"), missing(n.Capabilities), lost(n.Losses, false), lost(n.Losses, true))
	}
	return t.write(w)
}

// missing names what the node cannot do.
func missing(capabilities []client.Capability) string {
	var names []string
	for _, c := range capabilities {
		if !c.Available {
			names = append(names, c.Name)
		}
	}
	return cmp.Or(strings.Join(names, ","), "-")
}

// lost lists the places where samples were lost, or those where they were kept without names.
func lost(list []client.Loss, unnamed bool) string {
	var parts []string
	for _, l := range list {
		if l.Count > 0 && losses.Unnamed(l.Place) == unnamed {
			parts = append(parts, fmt.Sprintf("%s:%d", l.Place, l.Count))
		}
	}
	return cmp.Or(strings.Join(parts, ","), "-")
}

// ago is how long something is past, for a person.
func ago(then, now time.Time) string {
	if then.IsZero() {
		return "never"
	}
	d := max(0, now.Sub(then))
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}
