// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"diagon.dev/diagon/cmd/diagon/internal/text"
)

// A table lines up its cells. Columns of numbers stand to the right.
type table struct {
	head []string
	rows [][]string
	// right says of each column whether it is aligned to the right.
	right []bool
}

// newTable names the columns; a name that begins with ">" is aligned to the right.
func newTable(head ...string) *table {
	t := &table{}
	for _, h := range head {
		name, right := strings.CutPrefix(h, ">")
		t.head = append(t.head, name)
		t.right = append(t.right, right)
	}
	return t
}

// add takes a row. Cells come from servers and processes: what would steer a terminal is
// made visible instead.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = text.Printable(cell)
	}
	t.rows = append(t.rows, cells)
}

// write leaves two spaces between columns and none at the end of a line.
func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if t.right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
