// SPDX-License-Identifier: Apache-2.0

package procmaps

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want Mapping
		err  string
	}{
		{
			name: "a file's text",
			in:   "7f01a000-7f01b000 r-xp 00026000 fd:01 131091                     /usr/lib/libc.so.6\n",
			want: Mapping{Start: 0x7f01a000, End: 0x7f01b000, Offset: 0x26000, Major: 0xfd, Minor: 1, Inode: 131091, Path: "/usr/lib/libc.so.6", Perm: Read | Exec},
		},
		{
			name: "anonymous memory has no path",
			in:   "1000-2000 rwxp 00000000 00:00 0 \n",
			want: Mapping{Start: 0x1000, End: 0x2000, Perm: Read | Write | Exec},
		},
		{
			name: "a line may end right after the inode",
			in:   "1000-2000 rw-s 00000000 00:00 0",
			want: Mapping{Start: 0x1000, End: 0x2000, Perm: Read | Write | Shared},
		},
		{
			name: "a deleted file is marked and keeps its path",
			in:   "1000-2000 r-xp 00000000 00:21 7      /tmp/a b (deleted)\n",
			want: Mapping{Start: 0x1000, End: 0x2000, Minor: 0x21, Inode: 7, Path: "/tmp/a b", Perm: Read | Exec, Deleted: true},
		},
		{
			name: "a newline in a path is escaped by the kernel",
			in:   "1000-2000 r-xp 00000000 00:21 7      /tmp/a\\012b\n",
			want: Mapping{Start: 0x1000, End: 0x2000, Minor: 0x21, Inode: 7, Path: "/tmp/a\nb", Perm: Read | Exec},
		},
		{
			name: "the highest page of the address space",
			in:   "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
			want: Mapping{Start: 0xffffffffff600000, End: 0xffffffffff601000, Path: "[vsyscall]", Perm: Exec},
		},
		{name: "an end before its start", in: "2000-1000 r-xp 00000000 00:00 0\n", err: "line 1: end address"},
		{name: "an address of more than 64 bits", in: "10000000000000000-2 r-xp 0 0:0 0\n", err: "start address"},
		{name: "a line cut in its permissions", in: "1000-2000 r-", err: "permissions"},
		{name: "a line cut before its inode", in: "1000-2000 r-xp 00000000 00:00", err: "inode"},
		{name: "a line longer than any path", in: "1000-2000 r-xp 00000000 00:00 1 /" + strings.Repeat("x", maxLine), err: "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got Mapping
			err := Scan(strings.NewReader(tt.in), func(m Mapping) bool { got = m; return true })
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want one saying %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("\n got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestTheTableOfThisProcessFindsItsOwnCode(t *testing.T) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := Executable(f, 1000)
	if err != nil {
		t.Fatal(err)
	}
	pc := uint64(reflect.ValueOf(TestScan).Pointer())
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	m := table.Find(pc)
	if m == nil || m.Path != exe || !m.IsFile() {
		t.Fatalf("Find(%#x) = %+v, want a mapping of %s", pc, m, exe)
	}
	if m := table.Find(8); m != nil {
		t.Errorf("Find(8) = %+v, want none", m)
	}
}

func TestAProcessWithMoreMappingsThanTheLimit(t *testing.T) {
	var in strings.Builder
	for i := range 65_000 {
		fmt.Fprintf(&in, "%x-%x r-xp 00000000 00:00 0 \n", 0x10000+i*0x2000, 0x11000+i*0x2000)
	}
	table, err := Executable(strings.NewReader(in.String()), 4096)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Mappings) != 4096 || table.Skipped != 65_000-4096 {
		t.Errorf("kept %d, skipped %d", len(table.Mappings), table.Skipped)
	}
	if table.Find(0x10000+4095*0x2000) == nil || table.Find(0x11000) != nil {
		t.Error("the gaps between mappings are not told from the mappings")
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("1000-2000 r-xp 00000000 00:21 7      /tmp/a b (deleted)\n1000-2000 rw-s 00000000 00:00 0"))
	f.Add([]byte("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		table, _ := Executable(strings.NewReader(string(raw)), 16)
		for _, m := range table.Mappings {
			if m.End < m.Start || m.Perm&Exec == 0 {
				t.Errorf("%+v", m)
			}
		}
		table.Find(0x1800)
	})
}

func BenchmarkExecutable(b *testing.B) {
	raw, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Executable(strings.NewReader(string(raw)), 1000); err != nil {
			b.Fatal(err)
		}
	}
}
