// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// OneDash gives the named long flags of args their second dash where they came
// with one: -channel=x becomes --channel=x.
//
// The DaemonSet that an earlier daemon of this name documents starts it with
// "-standalone=true -channel=… -alsologtostderr=true", in the manner of Go's flag
// package. Users keep that manifest and change image and channel. pflag reads
// -standalone as the nine short flags -s -t -a …, hence the names one by one:
// for all other flags one dash keeps its meaning.
func OneDash(args []string, names ...string) []string {
	out := append([]string(nil), args...)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		for _, name := range names {
			if arg == "-"+name || strings.HasPrefix(arg, "-"+name+"=") {
				out[i] = "-" + arg
			}
		}
	}
	return out
}
