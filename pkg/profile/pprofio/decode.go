// SPDX-License-Identifier: Apache-2.0

package pprofio

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"

	"diagon.dev/diagon/pkg/profile"
)

// ErrTooLarge means that a profile exceeds one of the Limits.
var ErrTooLarge = errors.New("profile is too large")

// Decode reads a pprof profile, in gzip or bare, that Encode or Marshal could have
// written. The bytes may come from anyone: what exceeds lim, or is not a valid
// profile, is an error, before much memory is spent on it.
//
// Equal mappings, locations and subjects of the result are shared pointers.
func Decode(data []byte, lim Limits) (profile.Batch, Meta, error) {
	raw, err := inflate(data, lim.Bytes)
	if err != nil {
		return profile.Batch{}, Meta{}, fmt.Errorf("decode pprof: %w", err)
	}
	if err := lim.check(raw); err != nil {
		return profile.Batch{}, Meta{}, fmt.Errorf("decode pprof: %w", err)
	}
	p, err := pprof.ParseUncompressed(raw)
	if err != nil {
		return profile.Batch{}, Meta{}, fmt.Errorf("decode pprof: %w", err)
	}
	if err := p.CheckValid(); err != nil {
		return profile.Batch{}, Meta{}, fmt.Errorf("decode pprof: %w", err)
	}
	b, m, err := convert(p)
	if err != nil {
		return profile.Batch{}, Meta{}, fmt.Errorf("decode pprof: %w", err)
	}
	return b, m, nil
}

// inflate returns what is in data: itself, unless it begins as gzip does (RFC 1952, 2.3.1).
func inflate(data []byte, limit int64) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer zr.Close()
	raw, err := io.ReadAll(io.LimitReader(zr, limit+1))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes when unpacked", ErrTooLarge, limit)
	}
	return raw, nil
}

func convert(p *pprof.Profile) (profile.Batch, Meta, error) {
	types := make([]profile.Type, len(p.SampleType))
	for i, st := range p.SampleType {
		t, ok := profile.ParseType(st.Type)
		if !ok || t.Unit() != st.Unit {
			return profile.Batch{}, Meta{}, fmt.Errorf("sample type %q in %q is not one of diagon's", st.Type, st.Unit)
		}
		types[i] = t
	}
	b := profile.Batch{
		Start: time.Unix(0, p.TimeNanos).UTC(),
		End:   time.Unix(0, p.TimeNanos+p.DurationNanos).UTC(),
	}
	if p.PeriodType != nil && p.PeriodType.Type == profile.CPU.String() {
		b.PeriodNS = p.Period
	}
	var m Meta
	readComments(p.Comments, &b, &m)

	d := decoder{
		mappings:  make(map[profile.Mapping]*profile.Mapping),
		locations: make(map[*pprof.Location]*profile.Location),
		subjects:  make(map[profile.Subject]*profile.Subject),
		ignored:   make(map[string]bool),
	}
	b.Records = make([]profile.Record, len(p.Sample))
	for i, s := range p.Sample {
		r := &b.Records[i]
		if err := d.labels(s, r); err != nil {
			return profile.Batch{}, Meta{}, fmt.Errorf("sample %d: %w", i, err)
		}
		for j, v := range s.Value {
			r.Values[types[j]] += v
		}
		r.Stack = make(profile.Stack, len(s.Location))
		for j, l := range s.Location {
			loc := d.location(l)
			r.Stack[j] = profile.Frame{Realm: loc.Realm, Address: l.Address, Location: loc}
		}
	}
	for name := range d.ignored {
		m.Ignored = append(m.Ignored, name)
	}
	slices.Sort(m.Ignored)
	return b, m, nil
}

func readComments(comments []string, b *profile.Batch, m *Meta) {
	for _, c := range comments {
		key, value, ok := strings.Cut(c, commentSep)
		if !ok {
			continue
		}
		switch key {
		case commentNode:
			m.Node = value
		case commentVersion:
			m.AgentVersion = value
		case commentBootID:
			m.BootID = value
		case commentLost:
			place, count, _ := strings.Cut(value, " ")
			if n, err := strconv.ParseUint(count, 10, 64); err == nil {
				b.Losses = append(b.Losses, profile.Loss{Place: place, Count: n})
			}
		}
	}
}

// A decoder shares what is equal in one profile.
type decoder struct {
	mappings  map[profile.Mapping]*profile.Mapping
	locations map[*pprof.Location]*profile.Location
	subjects  map[profile.Subject]*profile.Subject
	ignored   map[string]bool
}

func (d *decoder) labels(s *pprof.Sample, r *profile.Record) error {
	var subject profile.Subject
	for name, values := range s.Label {
		value := strings.Join(values, ",")
		switch name {
		case LabelPID:
			pid, err := strconv.ParseUint(value, 10, 31)
			if err != nil {
				return fmt.Errorf("label pid: %q is not a process id", value)
			}
			subject.PID = int(pid)
		case LabelComm:
			subject.Comm = value
		case LabelThread:
			r.Thread = value
		case LabelContainerID:
			subject.ContainerID = value
		case LabelNamespace:
			subject.Namespace = value
		case LabelPod:
			subject.Pod = value
		case LabelContainer:
			subject.Container = value
		case LabelWorkload:
			subject.Workload = value
		case LabelWorkloadKind:
			subject.WorkloadKind = value
		case LabelRank:
			subject.Rank = value
		case LabelDevice:
			r.Device = value
		case LabelIoctl:
			r.Request = value
		default:
			d.ignored[name] = true
		}
	}
	for name := range s.NumLabel {
		d.ignored[name] = true
	}
	shared := d.subjects[subject]
	if shared == nil {
		shared = &subject
		d.subjects[subject] = shared
	}
	r.Subject = shared
	return nil
}

func (d *decoder) location(p *pprof.Location) *profile.Location {
	if l := d.locations[p]; l != nil {
		return l
	}
	l := &profile.Location{Realm: profile.RealmUser, Offset: p.Address}
	for _, line := range p.Line {
		// CheckValid has seen that each line has a function.
		l.Lines = append(l.Lines, profile.Line{Function: line.Function.Name, File: line.Function.Filename, Number: int(line.Line)})
	}
	if p.Mapping != nil {
		l.Realm, l.Mapping = d.mapping(p.Mapping)
	} else if len(l.Lines) > 0 {
		l.Realm = profile.RealmSynthetic
	}
	d.locations[p] = l
	return l
}

func (d *decoder) mapping(p *pprof.Mapping) (profile.Realm, *profile.Mapping) {
	realm := profile.RealmUser
	m := profile.Mapping{Path: p.File, BuildID: p.BuildID}
	if module, ok := strings.CutPrefix(m.Path, kernelPath+"/"); ok {
		realm, m.Path = profile.RealmKernel, module
	} else if m.Path == kernelPath {
		realm = profile.RealmKernel
	}
	shared := d.mappings[m]
	if shared == nil {
		shared = &m
		d.mappings[m] = shared
	}
	return realm, shared
}
