// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// SizeVar declares a flag for a number of bytes, written as 4096, 64KiB, 1.5GiB
// or 20GB. Its default is what p holds.
func SizeVar(flags *pflag.FlagSet, p *int64, name, usage string) {
	flags.Var((*size)(p), name, usage)
}

// size is a pflag.Value.
type size int64

// The units, largest first. KB is 1000 bytes and KiB 1024; Ki is how Kubernetes writes KiB.
var units = []struct {
	name  string
	bytes float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

func (s *size) Type() string { return "size" }

// String is exact: a size that is no whole number of a larger unit is in bytes.
func (s *size) String() string {
	for _, u := range units[:4] {
		if n := int64(u.bytes); *s != 0 && int64(*s)%n == 0 {
			return strconv.FormatInt(int64(*s)/n, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *size) Set(text string) error {
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	*s = size(n)
	return nil
}

func parseSize(text string) (int64, error) {
	number, unit := text, 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 && n <= math.MaxInt64/int64(unit) {
		return n * int64(unit), nil
	}
	x, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || math.IsNaN(x):
		return 0, errors.New("want a number of bytes, as in 64MiB or 20GB")
	case x < 0:
		return 0, errors.New("negative")
	case x*unit >= math.MaxInt64:
		return 0, fmt.Errorf("above %d bytes", int64(math.MaxInt64))
	}
	return int64(x * unit), nil
}
