// SPDX-License-Identifier: Apache-2.0

// Package text makes what strangers wrote fit for a terminal.
package text

import (
	"io"
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

// Writer passes whole lines on to w, printable but for their ends. Each Write must end at a
// rune's end.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

func (w writer) Write(b []byte) (int, error) {
	lines := strings.Split(string(b), "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	if _, err := io.WriteString(w.to, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}
