// SPDX-License-Identifier: Apache-2.0

// Package losses words losses for a person: what is lost, and what was only kept without names.
package losses

import (
	"fmt"
	"strings"

	"diagon.dev/diagon/pkg/profile"
)

// Unnamed is true of the places where a sample is kept, but without names, as agent.Losses
// lists them.
func Unnamed(place string) bool { return place == "exited" || place == "exec" }

// Lost is true when samples are missing.
func Lost(list []profile.Loss) bool {
	for _, l := range list {
		if l.Count > 0 && !Unnamed(l.Place) {
			return true
		}
	}
	return false
}

// Text lists losses by place, as in "12 at ring; without names: 3 at exited"; number writes a count.
func Text(list []profile.Loss, number func(uint64) string) string {
	var lost, unnamed []string
	for _, l := range list {
		part := fmt.Sprintf("%s at %s", number(l.Count), l.Place)
		if Unnamed(l.Place) {
			unnamed = append(unnamed, part)
		} else {
			lost = append(lost, part)
		}
	}
	text := strings.Join(lost, ", ")
	if text == "" {
		text = "nothing"
	}
	if len(unnamed) > 0 {
		text += "; without names: " + strings.Join(unnamed, ", ")
	}
	return text
}
