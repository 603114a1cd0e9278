// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diagon.dev/diagon/cmd/internal/config"
	"diagon.dev/diagon/pkg/server"
)

// options are what the program itself decides, beside the server.
type options struct {
	server   server.Config
	window   time.Duration
	agent    bool
	agentArg []string
	program  string // of the agent; "" is the one beside this
	logLevel slog.Level
	memory   int64 // bytes of Go's heap at which its collector works harder
}

// Set by the build: -ldflags "-X main.version=1.2.3 -X main.commit=0123abc".
var (
	version = "0.0.0-dev"
	commit  = ""
)

const defaultMemory = 1 << 30

func command(environ []string) *cobra.Command {
	o := &options{server: server.DefaultConfig(), memory: defaultMemory}
	cmd := &cobra.Command{
		Use:   "diagon-server",
		Short: "Take profiles from agents, keep them, show them",
		Long: "diagon-server takes profiles from agents by gRPC, keeps them in a folder, and shows them on a page.\n" +
			"Each setting can also stand in the --config file under its flag's name, or in the environment: DIAGON_HTTP for --http.",
		Version:       strings.TrimSpace(version + " " + commit),
		Args:          noArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	o.declare(cmd.Flags())
	set := config.New(cmd.Flags(), "DIAGON")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{set.FlagError(err)} })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		warnings, err := set.Load(environ)
		if err != nil {
			return err
		}
		o.server.Settings.WindowMS = uint32(o.window.Milliseconds())
		if set.PrintOnly() {
			return set.Print(cmd.OutOrStdout())
		}
		log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: o.logLevel}))
		for _, w := range warnings {
			log.Warn("environment variable is not used", "what", w)
		}
		return run(cmd.Context(), o, environ, cmd.OutOrStdout(), cmd.ErrOrStderr(), log)
	}
	return cmd
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%q: diagon-server takes flags only; --help lists them", args[0])}
	}
	return nil
}

// run serves until ctx is done.
func run(ctx context.Context, o *options, environ []string, stdout, stderr io.Writer, log *slog.Logger) error {
	if limit, ok := memoryMark(o.memory, environ); ok {
		debug.SetMemoryLimit(limit)
	}
	var agent *localAgent
	if o.agent {
		var err error
		if agent, err = newLocalAgent(o, environ, stderr, log); err != nil {
			return err
		}
	}
	s, err := server.Start(ctx, o.server, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n  diagon is at  %s\n\n", s.URL())
	if agent == nil {
		return s.Wait(ctx)
	}
	// The agent ends first, so that what it still sends is taken.
	done := make(chan struct{})
	agentCtx, stopAgent := context.WithCancel(ctx)
	go func() { defer close(done); agent.run(agentCtx, s.GRPCAddr()) }()
	serving, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	go func() { <-done; stopServer() }()
	err = s.Wait(serving)
	stopAgent()
	<-done
	return err
}

// declare binds each setting to its flag. The names of the first four are fixed.
func (o *options) declare(f *pflag.FlagSet) {
	c := &o.server
	f.StringVar(&c.HTTP, "http", c.HTTP, "`address` of the page and the API")
	f.StringVar(&c.GRPC, "grpc", c.GRPC, "`address` that agents dial")
	f.StringVar(&c.Data, "data", c.Data, "`folder` for everything that must survive")
	f.BoolVar(&o.agent, "local-agent", false, "run the agent of this machine beside the server")
	f.StringVar(&o.program, "local-agent-program", "", "`file` of the local agent (default: diagon beside this program)")
	f.StringArrayVar(&o.agentArg, "local-agent-flag", nil, "a `flag` for the local agent, such as --rate=49; may be repeated")
	f.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")

	f.DurationVar(&c.Retention.Age, "retention-age", c.Retention.Age, "how long profiles are kept; 0 keeps all")
	config.SizeVar(f, &c.Retention.Bytes, "retention-bytes", "how much profiles may take on the disk; 0 has no bound")
	config.SizeVar(f, &c.Spare, "disk-spare", "how much of the disk stays free: below that no profiles are taken")
	config.SizeVar(f, &o.memory, "memory", "how much memory the server aims to stay below, beside the database's; 0 has no mark, and GOMEMLIMIT goes first")
	config.SizeVar(f, &c.Store.MemoryBytes, "store-memory", "how much memory the database may use")
	f.DurationVar(&c.Captures.Age, "capture-age", c.Captures.Age, "how long captures are kept")
	f.IntVar(&c.Captures.Count, "capture-count", c.Captures.Count, "how many captures are kept")
	config.SizeVar(f, &c.Artifacts.Bytes, "artifact-bytes", "largest file that a capture may bring")
	f.StringVar(&c.Artifacts.URL, "artifact-url", c.Artifacts.URL, "`bucket` for the files of captures, file:///path; empty: a folder in --data")

	f.StringVar(&c.Ingest.TLS.Cert, "tls-cert", "", "PEM `file` of the certificate shown to agents; empty: agents are served without TLS")
	f.StringVar(&c.Ingest.TLS.Key, "tls-key", "", "PEM `file` of its key")
	f.StringVar(&c.Ingest.TLS.ClientCA, "tls-client-ca", "", "PEM `file` of who signs agents' certificates; set, every agent needs one")
	f.StringVar((*string)(&c.Ingest.Identity), "identity", string(c.Ingest.Identity), "match: an agent's certificate must carry its node's name; off: its word is enough")
	f.StringSliceVar(&c.Web.Hosts, "http-hosts", nil, "host `names` of a proxy in front of a server that listens on the loopback")
	f.DurationVar(&c.Web.Write, "http-timeout", c.Web.Write, "longest time for one answer of the API")

	f.DurationVar(&c.Registry.Heartbeat, "heartbeat", c.Registry.Heartbeat, "how often agents report; a node that misses three reports is shown as disconnected")
	f.Uint32Var(&c.Settings.CPUHz, "agent-hz", 0, "samples a second and CPU asked of all agents; 0 leaves them their own")
	f.DurationVar(&o.window, "agent-window", 0, "length of a profile asked of all agents; 0 leaves them their own")
	config.SizeVar(f, &c.Ingest.Inflight, "ingest-inflight", "how much memory batches may take between the wire and the store")
	config.SizeVar(f, &c.Ingest.Message, "ingest-message", "largest message taken from an agent")
	config.SizeVar(f, &c.Ingest.Credit, "ingest-credit", "how much one agent may send ahead of its acknowledgements")
	f.IntVar(&c.Ingest.Agents, "ingest-agents", c.Ingest.Agents, "how many agents this server holds")
	f.IntVar(&c.Ingest.Uploads, "ingest-uploads", c.Ingest.Uploads, "how many files of captures come in at once")
	f.DurationVar(&c.Ingest.MaxAge, "grpc-max-age", c.Ingest.MaxAge, "age at which a connection is renewed, so that agents spread over several servers")

	f.StringVar(&c.Name, "server-name", "", "`name` of this server among several (default: the host's name and the gRPC port)")
	f.StringVar(&c.Bus.URL, "nats-url", "", "`address` of a NATS with JetStream that several servers share; empty: one in this process")
	config.Secret(f, "nats-url") // may hold a password
	f.StringVar(&c.Bus.Listen, "nats-listen", "", "`address` at which the NATS in this process takes other servers; empty: nowhere")
	f.IntVar(&c.Bus.Replicas, "nats-replicas", c.Bus.Replicas, "copies of each record in the NATS of --nats-url")
}
