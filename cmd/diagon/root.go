// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"diagon.dev/diagon/cmd/internal/config"
)

const (
	groupHost   = "host"
	groupServer = "server"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "diagon",
		Short: "Profile this host, or ask a diagon-server about many",
		Long: `diagon samples what the CPUs of this host run. As an agent it does so always and sends
the profiles to a diagon-server; as a person's tool it records, watches and examines
this host, and asks a server about others.`,
		Version:       version,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownVerb(cmd, args[0])
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Help about a command", RunE: func(cmd *cobra.Command, args []string) error {
		asked, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return unknownVerb(root, args[0])
		}
		asked.InitDefaultHelpFlag() // Execute does both for the command that it runs
		asked.InitDefaultVersionFlag()
		return asked.Help()
	}})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		err = fmt.Errorf("%w (%s --help lists them)", config.FlagError(cmd.Flags(), plainValue(err)), cmd.CommandPath())
		if cmd.HasParent() {
			err = wrap(cmd.Name(), err)
		}
		return usageError{err}
	})
	root.AddGroup(&cobra.Group{ID: groupHost, Title: "This host:"}, &cobra.Group{ID: groupServer, Title: "A server and its nodes:"})
	cobra.EnableCommandSorting = false

	for _, verb := range []struct {
		group string
		cmd   *cobra.Command
	}{
		{groupHost, newRecordCommand()},
		{groupHost, newTopCommand()},
		{groupHost, newDoctorCommand()},
		{groupHost, newAgentCommand(version)},
		{groupServer, newNodesCommand()},
		{groupServer, newQueryCommand()},
		{groupServer, newCaptureCommand()},
		{"", newVersionCommand()},
		{"", newHeldCommand()},
	} {
		verb.cmd.GroupID = verb.group
		verb.cmd.DisableFlagsInUseLine = true
		if verb.cmd.Args == nil {
			verb.cmd.Args = noArguments
		}
		root.AddCommand(verb.cmd)
	}
	return root
}

// unknownVerb names the verbs that are near.
func unknownVerb(cmd *cobra.Command, word string) error {
	cmd.SuggestionsMinimumDistance = 2
	near := cmd.SuggestionsFor(word)
	if len(near) > 0 {
		return usagef("%q is no command; did you mean %s?", word, strings.Join(near, " or "))
	}
	return usagef("%q is no command; `%s --help` lists them", word, cmd.CommandPath())
}

// plainValue words pflag's error about a value that cannot be read, which names Go's parser.
func plainValue(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	name, value := invalid.GetFlag().Name, invalid.GetValue()
	var number *strconv.NumError
	switch kind := invalid.GetFlag().Value.Type(); {
	case kind == "bool":
		return fmt.Errorf("--%s: %q is neither true nor false", name, value)
	case kind == "duration":
		return fmt.Errorf("--%s: %q is no time such as 10s or 5m", name, value)
	case errors.As(err, &number) && errors.Is(number, strconv.ErrRange):
		return fmt.Errorf("--%s: %q is too large", name, number.Num)
	case errors.As(err, &number):
		return fmt.Errorf("--%s: %q is no whole number", name, number.Num)
	}
	return err
}

// noArguments refuses words behind a verb that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s: takes no argument such as %q (%s --help)", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// agentProgram is the name under which the manifest of an earlier daemon starts the
// agent: /mldiagnostics_extension_files/bin/mldiagnostics_extension, without a verb.
const agentProgram = "mldiagnostics_extension"

// arguments is the command line in diagon's own words.
func arguments(args []string) []string {
	given := args[1:]
	if filepath.Base(args[0]) == agentProgram && (len(given) == 0 || strings.HasPrefix(given[0], "-")) {
		given = append([]string{"agent"}, given...)
	}
	given = config.OneDash(given, "help")
	if len(given) > 0 && given[0] == "agent" {
		given = config.OneDash(given, "standalone", "channel", "alsologtostderr")
	}
	return given
}

// wrap puts the verb before an error, as in "record: …".
func wrap(verb string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), verb+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", verb, err)
}
