// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// Print writes each setting as the file would say it, with its origin behind it:
//
//	rate: 49  # DIAGON_RATE
//
// Loading what it wrote gives the same settings. A secret is a comment that says where it was set.
func (s *Set) Print(w io.Writer) error {
	for _, f := range s.settings() {
		line := f.Name + ": " + written(f.Value) + "  # " + s.Origin(f.Name)
		if f.Annotations[secret] != nil {
			line = "# " + f.Name + " is a secret, origin: " + s.Origin(f.Name)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// written is v in YAML.
func written(v pflag.Value) string {
	list, ok := v.(pflag.SliceValue)
	if !ok {
		return scalar(v.String())
	}
	var items []string
	for _, item := range list.GetSlice() {
		items = append(items, scalar(item))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// Words that YAML gives no meaning, and numbers, need no quotation marks.
var plain = regexp.MustCompile(`^(-?[0-9]|[A-Za-z/.])[A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*$`)

func scalar(text string) string {
	switch strings.ToLower(text) {
	case "null", "y", "n", "yes", "no", "on", "off":
	default:
		if plain.MatchString(text) {
			return text
		}
	}
	// JSON's strings are YAML's too.
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic("config: encode a string: " + err.Error()) // cannot happen
	}
	return strings.TrimSuffix(b.String(), "\n")
}
