// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// Set by the build: -ldflags "-X main.version=1.2.3 -X main.commit=0123abc".
var (
	version = "0.0.0-dev"
	commit  = ""
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of diagon, Go and the kernel",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "diagon   %s\ncommit   %s\ngo       %s %s/%s\nkernel   %s\n",
				version, cmp.Or(commit, builtFrom(), "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH, kernelRelease())
			return nil
		},
	}
}

// builtFrom is the commit that the Go tool has noted, "" outside of a work tree.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}
	if revision == "" {
		return ""
	}
	return revision[:min(12, len(revision))] + dirty
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
