// SPDX-License-Identifier: Apache-2.0

package doctor

import "strings"

// Summary is what the agent says at its start, in one line: what this host can do and,
// with the reasons, what it cannot. Capabilities of the process and what nothing uses yet
// are left out: they are causes, and here stand the effects.
func Summary(findings []Finding) string {
	var works, not []string
	for _, f := range findings {
		switch {
		case f.Area == AreaCapabilities || f.Area == AreaLater:
		case f.Works:
			works = append(works, f.Name)
		default:
			not = append(not, f.Name+" ("+f.Reason()+")")
		}
	}
	line := "works: " + strings.Join(works, ", ")
	if len(works) == 0 {
		line = "nothing works"
	}
	if len(not) == 0 {
		return line + "; nothing is missing"
	}
	return line + "; does not: " + strings.Join(not, ", ")
}
