// SPDX-License-Identifier: Apache-2.0

// Package config answers one question: which value has each setting of a command, and from where?
//
// A setting is declared once, as a flag bound to a field of the command's Config:
//
//	cfg := oncpu.DefaultConfig()
//	flags.IntVar(&cfg.Hz, "rate", cfg.Hz, "samples a second on each CPU")
//	config.SizeVar(flags, &cfg.SpoolBytes, "spool-bytes", "how much an outage may put on disk")
//
// From the flag --spool-bytes follow the key spool-bytes of the configuration
// file and the environment variable DIAGON_SPOOL_BYTES. Each overrides the one
// before it: default, file, environment, flag.
//
//	set := config.New(cmd.Flags(), "DIAGON") // adds --config and --print-config
//	...                                      // after the flags are parsed:
//	warnings, err := set.Load(os.Environ())
//	if err != nil { ... }
//	if set.PrintOnly() {
//		return set.Print(os.Stdout)
//	}
//
// The file is YAML, one mapping from key to value, no nesting:
//
//	rate: 49
//	spool-bytes: 20GiB
//	labels: [pool=a, zone=b]
//
// What a value means, and whether several of them go together, is for the
// Validate of the package that owns it; here is only its type.
package config
