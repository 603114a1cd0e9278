// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diagon.dev/diagon/cmd/internal/config"
	"diagon.dev/diagon/pkg/agent"
)

// memoryCeiling makes the garbage collector work harder long before the 256 MiB that the
// agent may take with its BPF maps. GOMEMLIMIT overrides it.
const memoryCeiling = 160 << 20

// gcPercent trades a little CPU for a heap of half the size; GOGC overrides it.
const gcPercent = 50

func newAgentCommand(version string) *cobra.Command {
	cfg := agent.DefaultConfig()
	cfg.Version = version
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Profile this node, always, and send the profiles to a server",
		Long: `agent samples every CPU of this node, reads the host's counters, and streams both to a
diagon-server. It needs root, or the capabilities that "diagon doctor" lists.

Settings come from flags, DIAGON_* variables and a YAML file; --print-config shows them.`,
		Args: noArguments,
	}
	settings := agentFlags(cmd.Flags(), &cfg)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		warnings, err := settings.Load(os.Environ())
		if err != nil {
			return usageError{err}
		}
		if settings.PrintOnly() {
			return settings.Print(cmd.OutOrStdout())
		}
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		for _, w := range warnings {
			log.Warn("environment variable ignored", "reason", w)
		}
		if cfg.Node == "" {
			if cfg.Node, err = nodeName(); err != nil {
				return err
			}
		}
		if err := cfg.Validate(); err != nil {
			return usageError{settingError(settings, cmd.Flags(), err)}
		}
		boundCost()
		return agent.Run(cmd.Context(), cfg, log)
	}
	return cmd
}

// settingError says which setting a field of the configuration was given by, and where.
func settingError(settings *config.Set, flags *pflag.FlagSet, err error) error {
	name, rest, _ := strings.Cut(err.Error(), ": ")
	if name == "hz" {
		name = "rate"
	}
	if flags.Lookup(name) == nil {
		return err
	}
	return fmt.Errorf("%s: %s (set by %s)", name, rest, settings.Origin(name))
}

// agentFlags declares the agent's settings.
func agentFlags(flags *pflag.FlagSet, cfg *agent.Config) *config.Set {
	up := &cfg.Uplink
	flags.StringVar(&cfg.Node, "node", "", "`name` of this node (default: NODE_NAME of the environment, else the host's name)")
	flags.StringVar(&up.Channel, "channel", "", "the server, as `host[:port][/diagnostics]`; without a port 443 by TLS; empty: nothing is sent")
	flags.StringVar(&cfg.HTTP, "http", cfg.HTTP, "`address` of /metrics, /healthz and /readyz; empty: none")
	flags.IntVar(&cfg.OnCPU.Hz, "rate", cfg.OnCPU.Hz, "samples a second on each CPU")
	flags.DurationVar(&cfg.Window, "window", cfg.Window, "length of a profile")
	flags.DurationVar(&cfg.Host.Interval, "host-interval", cfg.Host.Interval, "time between two readings of the host")
	flags.StringVar(&up.Data, "data", up.Data, "`folder` for what the server has not acknowledged yet")
	config.SizeVar(flags, &up.Spool.Bytes, "spool-bytes", "how much of that folder an outage may take")
	flags.DurationVar(&up.Spool.Age, "spool-age", up.Spool.Age, "how old what is not acknowledged may grow")
	flags.StringVar((*string)(&up.TLS), "tls", string(up.TLS), "auto, on or off; auto is off for loopback addresses with a port, else on")
	flags.StringVar(&up.CAFile, "tls-ca", "", "PEM `file` of the authorities that may sign the server's certificate (default: the system's)")
	flags.StringVar(&up.CertFile, "tls-cert", "", "PEM `file` of this node's certificate, for mutual TLS")
	flags.StringVar(&up.KeyFile, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&up.ServerName, "tls-server-name", "", "`name` the server's certificate must be for (default: the host of --channel)")
	flags.IntVar(&cfg.Ceilings.Hz, "max-rate", cfg.Ceilings.Hz, "highest rate a server may ask for")
	flags.DurationVar(&cfg.Ceilings.Duration, "max-capture-duration", cfg.Ceilings.Duration, "longest capture a server may ask for")
	flags.StringSliceVar(&cfg.Ceilings.Kinds, "capture-kinds", cfg.Ceilings.Kinds, "kinds of captures a server may ask for; empty: none")

	// Accepted so that a manifest written for the system that diagon replaces works unchanged.
	// Both say what diagon does anyway: it runs by itself, and it logs to stderr.
	flags.Bool("standalone", true, "accepted, no effect: the agent always runs by itself")
	flags.Bool("alsologtostderr", true, "accepted, no effect: the log always goes to stderr")
	for _, name := range []string{"standalone", "alsologtostderr"} {
		config.FlagOnly(flags, name)
	}
	return config.New(flags, "DIAGON")
}

// nodeName is what Kubernetes calls the node, where the manifest says so, else the host's name.
func nodeName() (string, error) {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("the host has no name: %w; choose one with --node", err)
	}
	return name, nil
}

// boundCost keeps the agent small: its memory as above, and its CPU to one core on machines of
// up to 63 CPUs, four on the largest. Few threads also wake each other less, which is most of
// the agent's cost at low rates. GOMAXPROCS overrides it.
func boundCost() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryCeiling)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(1+runtime.NumCPU()/64, 4))
	}
}
