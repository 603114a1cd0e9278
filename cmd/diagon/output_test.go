// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagon.dev/diagon/pkg/profile"
)

func TestFolded(t *testing.T) {
	mapping := &profile.Mapping{Path: "/bin/busy"}
	at := func(functions ...string) profile.Frame {
		l := &profile.Location{Mapping: mapping, Offset: 0x40}
		for _, name := range functions {
			l.Lines = append(l.Lines, profile.Line{Function: name})
		}
		return profile.Frame{Location: l}
	}
	kernel := profile.Frame{Realm: profile.RealmKernel, Location: &profile.Location{Realm: profile.RealmKernel, Lines: []profile.Line{{Function: "read"}}}}
	once := profile.Values{profile.Samples: 1}
	for _, tt := range []struct {
		name    string
		records []profile.Record
		want    string
	}{
		{name: "nothing"},
		{name: "the root comes first", records: []profile.Record{{Stack: profile.Stack{kernel, at("hot"), at("main")}, Values: once}}, want: "main;hot;read_[k] 1\n"},
		{name: "equal stacks of different subjects add up", records: []profile.Record{
			{Stack: profile.Stack{at("f")}, Values: once, Subject: &profile.Subject{PID: 1}}, {Stack: profile.Stack{at("f")}, Values: once}}, want: "f 2\n"},
		{name: "what was inlined lies above its caller", records: []profile.Record{{Stack: profile.Stack{at("inner", "outer")}, Values: once}}, want: "outer;inner 1\n"},
		{name: "no name is module and offset", records: []profile.Record{{Stack: profile.Stack{at()}, Values: once}}, want: "busy+0x40 1\n"},
		{name: "no place is an address", records: []profile.Record{{Stack: profile.Stack{{Address: 0x41}}, Values: once}}, want: "0x41 1\n"},
		{name: "no stack is said", records: []profile.Record{{Values: once}}, want: "[no stack] 1\n"},
		{name: "a name cannot break a line or a frame", records: []profile.Record{{Stack: profile.Stack{at("a;b\nc")}, Values: once}}, want: "a:b c 1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := writeFolded(&b, &profile.Batch{Records: tt.records}); err != nil || b.String() != tt.want {
				t.Errorf("got %q, %v, want %q", b.String(), err, tt.want)
			}
		})
	}
}

func TestOutputAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.pb.gz")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	fill := func(content func(io.Writer) error) error {
		o, err := create(name, formatPprof, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer o.abandon()
		return o.fill(content)
	}
	broken := errors.New("the server went away")
	err := fill(func(w io.Writer) error { io.WriteString(w, "half"); return broken })
	if !errors.Is(err, broken) {
		t.Errorf("err = %v, want what broke it", err)
	}
	expectFile(t, name, "before")

	if err := fill(func(w io.Writer) error { _, err := io.WriteString(w, "after"); return err }); err != nil {
		t.Fatal(err)
	}
	expectFile(t, name, "after")
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left, want one", len(entries))
	}
}

func expectFile(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
	}
}
