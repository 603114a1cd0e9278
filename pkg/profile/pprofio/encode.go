// SPDX-License-Identifier: Apache-2.0

package pprofio

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"

	"diagon.dev/diagon/pkg/profile"
)

// Encode writes b as a pprof file: protobuf in gzip, as every pprof tool reads it.
func Encode(w io.Writer, b *profile.Batch, m Meta) error {
	if err := build(b, m).Write(w); err != nil {
		return fmt.Errorf("encode pprof: %w", err)
	}
	return nil
}

// Marshal returns b as a bare pprof protobuf, for who compresses it otherwise.
func Marshal(b *profile.Batch, m Meta) ([]byte, error) {
	var buf bytes.Buffer
	if err := build(b, m).WriteUncompressed(&buf); err != nil {
		return nil, fmt.Errorf("encode pprof: %w", err)
	}
	return buf.Bytes(), nil
}

func build(b *profile.Batch, m Meta) *pprof.Profile {
	e := encoder{
		out: &pprof.Profile{
			TimeNanos:     b.Start.UnixNano(),
			DurationNanos: b.End.Sub(b.Start).Nanoseconds(),
			Comments:      comments(b, m),
		},
		types:     usedTypes(b),
		mappings:  make(map[profile.Mapping]*pprof.Mapping),
		functions: make(map[functionKey]*pprof.Function),
		locations: make(map[*profile.Location]*pprof.Location),
		bare:      make(map[bareKey]*profile.Location),
		labels:    make(map[labelKey]map[string][]string),
	}
	if b.PeriodNS > 0 {
		e.out.PeriodType = &pprof.ValueType{Type: profile.CPU.String(), Unit: profile.CPU.Unit()}
		e.out.Period = b.PeriodNS
	}
	for _, t := range e.types {
		e.out.SampleType = append(e.out.SampleType, &pprof.ValueType{Type: t.String(), Unit: t.Unit()})
		if t == profile.CPU {
			e.out.DefaultSampleType = t.String()
		}
	}
	e.out.Sample = make([]*pprof.Sample, 0, len(b.Records))
	for i := range b.Records {
		e.record(&b.Records[i])
	}
	e.programFirst()
	return e.out
}

// programFirst moves the first mapping that is a program to the front of the list, since pprof's
// tools take that one for the profiled binary. Which mapping a location has goes by id.
func (e *encoder) programFirst() {
	for i, m := range e.out.Mapping {
		if strings.HasPrefix(m.File, "/") && !strings.Contains(m.File, ".so") {
			copy(e.out.Mapping[1:i+1], e.out.Mapping[:i])
			e.out.Mapping[0] = m
			return
		}
	}
}

// usedTypes lists the types that have a value somewhere, in order. An empty batch
// still has the two of the CPU sampler, since pprof refuses a profile without types.
func usedTypes(b *profile.Batch) []profile.Type {
	var used profile.Values
	for i := range b.Records {
		for t, v := range b.Records[i].Values {
			if v != 0 {
				used[t] = 1
			}
		}
	}
	var types []profile.Type
	for t, v := range used {
		if v != 0 {
			types = append(types, profile.Type(t))
		}
	}
	if len(types) == 0 {
		return []profile.Type{profile.Samples, profile.CPU}
	}
	return types
}

func comments(b *profile.Batch, m Meta) []string {
	var out []string
	add := func(key, value string) {
		if value != "" {
			out = append(out, key+commentSep+value)
		}
	}
	add(commentNode, m.Node)
	add(commentVersion, m.AgentVersion)
	add(commentBootID, m.BootID)
	add(commentWindow, b.End.Sub(b.Start).Round(time.Millisecond).String())
	for _, l := range b.Losses {
		add(commentLost, fmt.Sprintf("%s %d", l.Place, l.Count))
	}
	return out
}

// An encoder builds one profile. Its maps make each thing once.
type encoder struct {
	out       *pprof.Profile
	types     []profile.Type
	mappings  map[profile.Mapping]*pprof.Mapping
	functions map[functionKey]*pprof.Function
	locations map[*profile.Location]*pprof.Location
	bare      map[bareKey]*profile.Location
	labels    map[labelKey]map[string][]string
}

type functionKey struct{ name, file string }

// A bareKey is a frame that nobody looked up.
type bareKey struct {
	realm   profile.Realm
	address uint64
}

type labelKey struct {
	subject                 *profile.Subject
	thread, device, request string
}

func (e *encoder) record(r *profile.Record) {
	s := &pprof.Sample{
		Location: make([]*pprof.Location, len(r.Stack)),
		Value:    make([]int64, len(e.types)),
		Label:    e.labelsOf(r),
	}
	for i, f := range r.Stack {
		s.Location[i] = e.location(e.locate(f))
	}
	for i, t := range e.types {
		s.Value[i] = r.Values[t]
	}
	e.out.Sample = append(e.out.Sample, s)
}

// locate gives a frame that was never looked up the location that is its address.
func (e *encoder) locate(f profile.Frame) *profile.Location {
	if f.Location != nil {
		return f.Location
	}
	key := bareKey{f.Realm, f.Address}
	l := e.bare[key]
	if l == nil {
		l = &profile.Location{Realm: f.Realm, Offset: f.Address}
		e.bare[key] = l
	}
	return l
}

func (e *encoder) location(l *profile.Location) *pprof.Location {
	if p := e.locations[l]; p != nil {
		return p
	}
	p := &pprof.Location{ID: uint64(len(e.out.Location) + 1), Mapping: e.mapping(l), Address: l.Offset}
	for _, line := range l.Lines {
		p.Line = append(p.Line, pprof.Line{Function: e.function(line), Line: int64(line.Number)})
	}
	e.out.Location = append(e.out.Location, p)
	e.locations[l] = p
	return p
}

func (e *encoder) mapping(l *profile.Location) *pprof.Mapping {
	if l.Mapping == nil && l.Realm != profile.RealmKernel {
		return nil
	}
	m := profile.Mapping{Path: kernelPath}
	if l.Mapping != nil {
		m = *l.Mapping
	}
	if l.Realm == profile.RealmKernel && m.Path != kernelPath {
		m.Path = kernelPath + "/" + m.Path
	}
	if p := e.mappings[m]; p != nil {
		return p
	}
	// The flags keep pprof tools from trying to name again what has been named here.
	p := &pprof.Mapping{
		ID: uint64(len(e.out.Mapping) + 1), Limit: ^uint64(0), File: m.Path, BuildID: m.BuildID,
		HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
	}
	e.out.Mapping = append(e.out.Mapping, p)
	e.mappings[m] = p
	return p
}

func (e *encoder) function(line profile.Line) *pprof.Function {
	key := functionKey{line.Function, line.File}
	if p := e.functions[key]; p != nil {
		return p
	}
	p := &pprof.Function{ID: uint64(len(e.out.Function) + 1), Name: line.Function, SystemName: line.Function, Filename: line.File}
	e.out.Function = append(e.out.Function, p)
	e.functions[key] = p
	return p
}

// labelsOf is the same map for all records of one thread name: pprof only reads it.
func (e *encoder) labelsOf(r *profile.Record) map[string][]string {
	key := labelKey{r.Subject, r.Thread, r.Device, r.Request}
	if m, ok := e.labels[key]; ok {
		return m
	}
	m := make(map[string][]string)
	for _, l := range RecordLabels(r) {
		m[l.Name] = []string{l.Value}
	}
	e.labels[key] = m
	return m
}

// RecordLabels lists the labels of a record that have a value, sorted by name.
func RecordLabels(r *profile.Record) profile.Labels {
	var s profile.Subject
	if r.Subject != nil {
		s = *r.Subject
	}
	pid := ""
	if s.PID != 0 {
		pid = strconv.Itoa(s.PID)
	}
	all := profile.Labels{
		{Name: LabelComm, Value: s.Comm},
		{Name: LabelContainer, Value: s.Container},
		{Name: LabelContainerID, Value: s.ContainerID},
		{Name: LabelDevice, Value: r.Device},
		{Name: LabelIoctl, Value: r.Request},
		{Name: LabelNamespace, Value: s.Namespace},
		{Name: LabelPID, Value: pid},
		{Name: LabelPod, Value: s.Pod},
		{Name: LabelRank, Value: s.Rank},
		{Name: LabelThread, Value: r.Thread},
		{Name: LabelWorkload, Value: s.Workload},
		{Name: LabelWorkloadKind, Value: s.WorkloadKind},
	}
	set := all[:0]
	for _, l := range all {
		if l.Value != "" {
			set = append(set, l)
		}
	}
	return set
}
