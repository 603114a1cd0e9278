// SPDX-License-Identifier: Apache-2.0

// Package text makes what strangers wrote fit for a terminal.
package text

import (
	"strings"
	"unicode"
)

// Printable puts U+FFFD in the place of control characters. A process chooses its own
// name, and root looks at it.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
