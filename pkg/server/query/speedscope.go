// SPDX-License-Identifier: Apache-2.0

package query

import (
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// A Speedscope is a file of https://www.speedscope.app/file-format-schema.json.
type Speedscope struct {
	Schema             string              `json:"$schema"`
	Shared             speedscopeShared    `json:"shared"`
	Profiles           []speedscopeProfile `json:"profiles"`
	Name               string              `json:"name"`
	ActiveProfileIndex int                 `json:"activeProfileIndex"`
	Exporter           string              `json:"exporter"`
}

type speedscopeShared struct {
	Frames []speedscopeFrame `json:"frames"`
}

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
}

type speedscopeProfile struct {
	Type       string    `json:"type"`
	Name       string    `json:"name"`
	Unit       string    `json:"unit"`
	StartValue int64     `json:"startValue"`
	EndValue   int64     `json:"endValue"`
	Samples    [][]int32 `json:"samples"` // outermost first
	Weights    []int64   `json:"weights"`
}

// NewSpeedscope shapes weights into a speedscope file. The samples have no order in time.
func NewSpeedscope(t profile.Type, w store.Weights) Speedscope {
	p := speedscopeProfile{Type: "sampled", Name: t.String(), Unit: "none", Samples: [][]int32{}, Weights: []int64{}}
	if t.Unit() == "nanoseconds" {
		p.Unit = t.Unit()
	}
	fs := newFunctions()
	for _, weight := range w.Stacks {
		path := []int32{}
		fs.walk(weight.Stack, func(f int32) { path = append(path, f) })
		p.Samples = append(p.Samples, path)
		p.Weights = append(p.Weights, weight.Value)
		p.EndValue += weight.Value
	}
	frames := make([]speedscopeFrame, len(fs.list))
	for i, f := range fs.list {
		frames[i] = speedscopeFrame{Name: f.Name, File: f.File}
	}
	return Speedscope{
		Schema:   "https://www.speedscope.app/file-format-schema.json",
		Shared:   speedscopeShared{Frames: frames},
		Profiles: []speedscopeProfile{p},
		Name:     "diagon " + t.String(),
		Exporter: "diagon",
	}
}
