// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
	"unsafe"

	"diagon.dev/diagon/pkg/profile"
)

// A part fills in one part of a record, which is laid out as the C side does it:
// header, kernel frames, user frames.
type part func(*parts)

type parts struct {
	head         kernOncpuSample
	kernel, user []byte
}

func record(fill ...part) []byte {
	var p parts
	for _, f := range fill {
		f(&p)
	}
	head := unsafe.Slice((*byte)(unsafe.Pointer(&p.head)), headerBytes)
	return append(append(append([]byte(nil), head...), p.kernel...), p.user...)
}

func words(addresses []uint64) []byte {
	var b []byte
	for _, a := range addresses {
		b = binary.NativeEndian.AppendUint64(b, a)
	}
	return b
}

func kern(addresses ...uint64) part {
	return func(p *parts) { p.kernel, p.head.KernelBytes = words(addresses), int32(8*len(addresses)) }
}

func user(addresses ...uint64) part {
	return func(p *parts) { p.user, p.head.UserBytes = words(addresses), int32(8*len(addresses)) }
}

func userErrno(errno int32) part { return func(p *parts) { p.head.UserBytes = errno } }

// frame is one struct bpf_stack_build_id.
type frame struct {
	status uint32
	id     string // raw bytes
	offset uint64
}

func buildIDs(frames ...frame) part {
	return func(p *parts) {
		p.head.UserForm = kernOncpuUserFormUSER_BUILD_IDS
		for _, f := range frames {
			p.user = binary.NativeEndian.AppendUint32(p.user, f.status)
			var id buildID
			copy(id[:], f.id)
			p.user = append(p.user, id[:]...)
			p.user = binary.NativeEndian.AppendUint64(p.user, f.offset)
		}
		p.head.UserBytes = int32(len(p.user))
	}
}

func comm(name string) part {
	return func(p *parts) {
		for i := range len(name) {
			p.head.Comm[i] = int8(name[i])
		}
	}
}

func who(pid, tid uint32) part {
	return func(p *parts) { p.head.Pid, p.head.Tid = pid, tid }
}

func bootNS(ns uint64) part { return func(p *parts) { p.head.BootNs = ns } }

func TestDecodeStacks(t *testing.T) {
	sha1 := strings.Repeat("\xab", 20)
	for _, tt := range []struct {
		name string
		in   []byte
		want string // leaf first; [k] marks kernel frames
		err  string
	}{
		{name: "kernel sits on the leaf side", in: record(user(0x4100, 0x4000), kern(0xf1, 0xf0)), want: "0xf1[k] 0xf0[k] 0x4100 0x4000"},
		{name: "a kernel thread has no user side", in: record(kern(0xf0)), want: "0xf0[k]"},
		{name: "errno in place of the user stack", in: record(userErrno(-14), kern(0xf0)), want: "0xf0[k]"},
		{name: "neither side could be walked", in: record(userErrno(-14)), want: ""},
		{name: "size claims more than was sent", in: record(user(0x4100, 0x4000))[:headerBytes+8], want: "0x4100"},
		{name: "half an address is none", in: record(user(0x4100, 0x4000))[:headerBytes+12], want: "0x4100"},
		{name: "a walk that lost its way ends there", in: record(user(0x4100, 0xbe552274c0854800, 0x4000)), want: "0x4100"},
		{name: "so does one of build-ids", in: record(buildIDs(frame{1, sha1, 0x99}, frame{2, "", 0xbe552274c0854800}, frame{1, sha1, 0x98})), want: "[build-id:abababababab]+0x99"},
		{name: "no code lies in the first page", in: record(user(0x4100, 1)), want: "0x4100"},
		{name: "a zero at the end is no frame", in: record(user(0x4100, 0)), want: "0x4100"},
		{name: "header cut short", in: record()[:8], err: "shorter than its header"},
		{name: "nothing at all", in: nil, err: "shorter than its header"},
		{name: "an unseen process has build-ids and offsets", in: record(kern(0xf0), buildIDs(frame{1, sha1, 0x1234}, frame{1, sha1, 0x99})), want: "0xf0[k] [build-id:abababababab]+0x1234 [build-id:abababababab]+0x99"},
		{name: "a frame in no file keeps its address", in: record(buildIDs(frame{2, "", 0x7f00}, frame{1, sha1, 0x99})), want: "0x7f00 [build-id:abababababab]+0x99"},
		{name: "an empty slot is no frame", in: record(buildIDs(frame{1, sha1, 0x99}, frame{0, "", 0})), want: "[build-id:abababababab]+0x99"},
		{name: "half a build-id is none", in: record(buildIDs(frame{1, sha1, 0x99}, frame{1, sha1, 0x98}))[:headerBytes+40], want: "[build-id:abababababab]+0x99"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newDecoder(19).decode(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want one saying %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := got.Stack.String(); s != tt.want {
				t.Errorf("stack\n got %s\nwant %s", s, tt.want)
			}
		})
	}
}

func TestDecodeHeader(t *testing.T) {
	d := newDecoder(20)
	d.wall = 1000 * time.Second
	s, err := d.decode(record(who(7, 8), comm("sshd"), bootNS(5e9), user(0x4000)))
	if err != nil {
		t.Fatal(err)
	}
	if s.PID != 7 || s.TID != 8 || s.Thread != "sshd" {
		t.Errorf("process %d, thread %d %q; want 7, 8 sshd", s.PID, s.TID, s.Thread)
	}
	if want := time.Unix(1005, 0); !s.Time.Equal(want) {
		t.Errorf("time %v, want %v", s.Time, want)
	}
	if s.Values[profile.Samples] != 1 || s.Values[profile.CPU] != 50e6 {
		t.Errorf("values %v, want 1 sample of 50 ms", s.Values)
	}

	d.wall += time.Hour // the wall clock was set between two drains
	s, err = d.decode(record(bootNS(6e9)))
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Unix(1006+3600, 0); !s.Time.Equal(want) {
		t.Errorf("time %v after the clock was set, want %v", s.Time, want)
	}
}

func TestDecodeNames(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{name: "a name ends at its zero", raw: "python3\x00left", want: "python3"},
		{name: "a name may fill the whole field", raw: "0123456789abcdef", want: "0123456789abcdef"},
		{name: "a name need not be text", raw: "a\xffb", want: "a?b"},
		{name: "no name", raw: "", want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := newDecoder(19).decode(record(comm(tt.raw)))
			if err != nil {
				t.Fatal(err)
			}
			if s.Thread != tt.want {
				t.Errorf("thread %q, want %q", s.Thread, tt.want)
			}
		})
	}
}

func TestDecodeSharesLocations(t *testing.T) {
	id := strings.Repeat("\x01", 20)
	d := newDecoder(19)
	raw := record(buildIDs(frame{1, id, 1}, frame{1, id, 1}, frame{1, id, 2}))
	first, _ := d.decode(raw)
	second, _ := d.decode(raw)
	if first.Stack[0].Location != second.Stack[1].Location {
		t.Error("the same place has two locations")
	}
	if first.Stack[0].Location.Mapping != first.Stack[2].Location.Mapping {
		t.Error("the same file has two mappings")
	}
}

func TestBuildIDLength(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{name: "sha1", raw: strings.Repeat("\xab", 20), want: strings.Repeat("ab", 20)},
		{name: "uuid", raw: strings.Repeat("\xab", 16), want: strings.Repeat("ab", 16)},
		{name: "xxhash", raw: strings.Repeat("\xab", 8), want: strings.Repeat("ab", 8)},
		{name: "sha1 that ends in a zero", raw: strings.Repeat("\xab", 19), want: strings.Repeat("ab", 19) + "00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := newDecoder(19).decode(record(buildIDs(frame{1, tt.raw, 1})))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Stack[0].Location.Mapping.BuildID; got != tt.want {
				t.Errorf("build-id %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(record(user(0x4000), kern(0xf0)))
	f.Add(record(userErrno(-14)))
	f.Add(record(kern(0xf0), buildIDs(frame{1, strings.Repeat("\xab", 20), 1}, frame{2, "", 0x4000})))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := newDecoder(19).decode(raw)
		if err == nil && 8*len(s.Stack) > len(raw)-headerBytes {
			t.Errorf("%d frames out of %d bytes", len(s.Stack), len(raw))
		}
	})
}

// BenchmarkDecode decodes what a drain usually sees: 5 kernel and 12 user frames.
func BenchmarkDecode(b *testing.B) {
	address := func(n int, base uint64) []uint64 {
		all := make([]uint64, n)
		for i := range all {
			all[i] = base + uint64(i)
		}
		return all
	}
	id := strings.Repeat("\xab", 20)
	frames := make([]frame, 12)
	for i := range frames {
		frames[i] = frame{1, id, uint64(i)}
	}
	for name, raw := range map[string][]byte{
		"addresses": record(comm("python3"), kern(address(5, 0xffffffff81000000)...), user(address(12, 0x7f0000000000)...)),
		"build-ids": record(comm("python3"), kern(address(5, 0xffffffff81000000)...), buildIDs(frames...)),
	} {
		b.Run(name, func(b *testing.B) {
			d := newDecoder(19)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
