// SPDX-License-Identifier: Apache-2.0

package pprofio

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"

	"diagon.dev/diagon/pkg/profile"
)

var (
	busy    = &profile.Mapping{Path: "/usr/bin/busy", BuildID: "abc123"}
	kernel  = &profile.Mapping{Path: "[kernel]"}
	module  = &profile.Mapping{Path: "nf_tables"}
	process = &profile.Subject{PID: 42, Comm: "busy", ContainerID: "c0ffee", Pod: "p", Namespace: "ns", Container: "main", Workload: "w", WorkloadKind: "Job", Rank: "3"}
)

func named(realm profile.Realm, m *profile.Mapping, offset uint64, functions ...string) profile.Frame {
	l := &profile.Location{Realm: realm, Mapping: m, Offset: offset}
	for i, f := range functions {
		l.Lines = append(l.Lines, profile.Line{Function: f, File: f + ".c", Number: i + 1})
	}
	return profile.Frame{Realm: realm, Address: offset, Location: l}
}

// everything is a batch that uses all that a batch can hold.
func everything() *profile.Batch {
	start := time.Unix(1_700_000_000, 123).UTC()
	main := named(profile.RealmUser, busy, 0x1000, "main")
	return &profile.Batch{
		Start: start, End: start.Add(10 * time.Second), PeriodNS: 52_631_578,
		Records: []profile.Record{
			{Subject: process, Thread: "worker", Values: profile.Values{profile.Samples: 3, profile.CPU: 157_894_734},
				Stack: profile.Stack{named(profile.RealmKernel, kernel, 0x10, "schedule"), named(profile.RealmKernel, module, 0x20, "nft_do_chain"), named(profile.RealmUser, busy, 0x2000, "inlined", "outer"), main}},
			{Subject: process, Thread: "worker", Values: profile.Values{profile.Samples: 1, profile.CPU: 52_631_578},
				Stack: profile.Stack{named(profile.RealmUser, busy, 0x3000), main}},
			{Subject: &profile.Subject{}, Values: profile.Values{profile.OffCPU: 5},
				Stack: profile.Stack{named(profile.RealmUser, nil, 0x7f00_0000)}},
			{Subject: process, Device: "gpu0", Request: "NV_ESC_RM_CONTROL", Values: profile.Values{profile.Ioctl: 7, profile.IoctlTime: 9},
				Stack: profile.Stack{named(profile.RealmSynthetic, nil, 0, "[accelerators]")}},
		},
		Losses: []profile.Loss{{Place: "ring", Count: 12}},
	}
}

func TestRoundTripKeepsAllOfABatch(t *testing.T) {
	meta := Meta{Node: "worker-3", AgentVersion: "1.2.3", BootID: "b-1"}
	var file bytes.Buffer
	if err := Encode(&file, everything(), meta); err != nil {
		t.Fatal(err)
	}
	bare, err := Marshal(everything(), meta)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"gzip": file.Bytes(), "bare": bare} {
		t.Run(name, func(t *testing.T) {
			got, m, err := Decode(data, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*everything(), got); diff != "" {
				t.Errorf("batch (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(meta, m); diff != "" {
				t.Errorf("meta (-want +got)\n%s", diff)
			}
		})
	}
}

func TestEqualThingsComeBackShared(t *testing.T) {
	raw, err := Marshal(everything(), Meta{})
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := Decode(raw, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	first, second := b.Records[0], b.Records[1]
	if first.Subject != second.Subject {
		t.Error("two records of one process have two subjects")
	}
	if first.Stack[3].Location != second.Stack[1].Location {
		t.Error("main is two locations")
	}
	if first.Stack[2].Location.Mapping != second.Stack[0].Location.Mapping {
		t.Error("one file is two mappings")
	}
}

func TestAFrameThatNobodyLookedUpKeepsItsAddress(t *testing.T) {
	b := profile.Batch{Records: []profile.Record{{
		Subject: &profile.Subject{}, Values: profile.Values{profile.Samples: 1},
		Stack: profile.Stack{{Realm: profile.RealmKernel, Address: 0xffff_0001}, {Realm: profile.RealmUser, Address: 0x41}},
	}}}
	raw, err := Marshal(&b, Meta{})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := Decode(raw, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Records[0].Stack.String(); s != "[kernel]+0xffff0001[k] [unknown]+0x41" {
		t.Errorf("stack = %q", s)
	}
}

func TestDecodeRefuses(t *testing.T) {
	raw, err := Marshal(everything(), Meta{})
	if err != nil {
		t.Fatal(err)
	}
	foreign := &pprof.Profile{SampleType: []*pprof.ValueType{{Type: "alloc_space", Unit: "bytes"}}}
	var foreignBytes bytes.Buffer
	if err := foreign.WriteUncompressed(&foreignBytes); err != nil {
		t.Fatal(err)
	}
	small := DefaultLimits()
	small.Frames = 3
	few := DefaultLimits()
	few.Messages = 5
	for _, tt := range []struct {
		name string
		data []byte
		lim  Limits
		want string
		is   error
	}{
		{name: "a profile cut short", data: raw[:len(raw)-3], lim: DefaultLimits(), want: "unexpected EOF"},
		{name: "random bytes", data: []byte("GET / HTTP/1.1\r\n\r\n"), lim: DefaultLimits(), want: "decode pprof"},
		{name: "gzip without a body", data: []byte{0x1f, 0x8b, 8}, lim: DefaultLimits(), want: "unexpected EOF"},
		{name: "another program's sample types", data: foreignBytes.Bytes(), lim: DefaultLimits(), want: `"alloc_space" in "bytes" is not one of diagon's`},
		{name: "four gibibytes of zeros in gzip", data: bomb(t, 4<<30), lim: DefaultLimits(), is: ErrTooLarge},
		{name: "more frames than allowed", data: raw, lim: small, is: ErrTooLarge},
		{name: "more messages than allowed", data: raw, lim: few, is: ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Decode(tt.data, tt.lim)
			if err == nil {
				t.Fatal("accepted")
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("err = %v, want %v", err, tt.is)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want one saying %q", err, tt.want)
			}
		})
	}
}

// bomb is n zero bytes in gzip: gzip members may follow each other, so one of
// 4 MiB is repeated.
func bomb(t *testing.T, n int) []byte {
	t.Helper()
	const part = 4 << 20
	var member bytes.Buffer
	zw := gzip.NewWriter(&member)
	if _, err := io.CopyN(zw, zeros{}, part); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.Repeat(member.Bytes(), n/part)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLabelsOfANewerAgentAreNamed(t *testing.T) {
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*pprof.Sample{{Value: []int64{1}, Label: map[string][]string{"colour": {"red"}}, NumLabel: map[string][]int64{"bytes": {3}}}},
	}
	var buf bytes.Buffer
	if err := p.WriteUncompressed(&buf); err != nil {
		t.Fatal(err)
	}
	_, m, err := Decode(buf.Bytes(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bytes", "colour"}, m.Ignored); diff != "" {
		t.Error(diff)
	}
}

func TestGoToolPprofReadsWhatEncodeWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pb.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Encode(f, everything(), Meta{Node: "n"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "tool", "pprof", "-top", "-sample_index=cpu", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"schedule", "main", "outer", "Type: cpu", "File: busy"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func FuzzDecode(f *testing.F) {
	raw, err := Marshal(everything(), Meta{Node: "n"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	lim := Limits{Bytes: 1 << 20, Messages: 10_000, Frames: 10_000}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, m, err := Decode(data, lim)
		if err != nil {
			return
		}
		if _, err := Marshal(&b, m); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}

func BenchmarkMarshal(b *testing.B) {
	batch := everything()
	record := batch.Records[0]
	for range 400 {
		batch.Records = append(batch.Records, record)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(batch, Meta{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch.Records)), "ns/record")
}
