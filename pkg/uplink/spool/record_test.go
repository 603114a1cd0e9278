// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// written lays batches out as a segment does, without its mark.
func written(sequences ...uint64) []byte {
	var raw []byte
	for _, s := range sequences {
		raw = appendRecord(raw, header{kind: kindBatch, sequence: s, samples: 10 * s}, fmt.Appendf(nil, "payload %d", s))
	}
	return raw
}

func flipped(raw []byte, at int) []byte {
	raw = slices.Clone(raw)
	raw[at] ^= 0xff
	return raw
}

func TestScan(t *testing.T) {
	const each = headerBytes + len("payload 1")
	for _, tt := range []struct {
		name string
		in   []byte
		want string
	}{
		{name: "an empty segment holds nothing", in: nil, want: ""},
		{name: "records follow one another", in: written(1, 2, 3), want: "1 2 3"},
		{name: "a payload cut short is a torn tail", in: written(1, 2)[:2*each-1], want: "1 torn=52"},
		{name: "a header cut short is a torn tail", in: written(1, 2)[:each+5], want: "1 torn=5"},
		{name: "zeros at the end are a torn tail", in: append(written(1), make([]byte, 200)...), want: "1 torn=200"},
		{name: "a damaged header costs its record alone", in: flipped(written(1, 2, 3), each+20), want: "1 3 damaged=1"},
		{name: "a damaged length costs its record alone", in: flipped(written(1, 2, 3), each+8), want: "1 3 damaged=1"},
		{name: "a damaged magic costs its record alone", in: flipped(written(1, 2, 3), 0), want: "2 3 damaged=1"},
		{name: "a damaged payload is found when it is read, not here", in: flipped(written(1, 2), headerBytes), want: "1 2"},
		{name: "rubbish in between is skipped", in: slices.Concat(written(1), bytes.Repeat([]byte("dgn\x01x"), 20_000), written(2)), want: "1 2 damaged=1"},
		{name: "rubbish at the end is damage", in: append(written(1), bytes.Repeat([]byte("x"), 100)...), want: "1 damaged=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			found, err := scan(bytes.NewReader(tt.in), int64(len(tt.in)), func(h header, _ int64) { got = append(got, fmt.Sprint(h.sequence)) })
			if err != nil {
				t.Fatal(err)
			}
			if found.torn > 0 {
				got = append(got, fmt.Sprintf("torn=%d", found.torn))
			}
			if found.records > 0 {
				got = append(got, fmt.Sprintf("damaged=%d", found.records))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("\n got %s\nwant %s", s, tt.want)
			}
		})
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte{})
	f.Add(written(1, 2, 3))
	f.Add(flipped(written(1, 2, 3), 60))
	f.Add(append(written(1), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		end := int64(0)
		found, err := scan(bytes.NewReader(raw), int64(len(raw)), func(h header, offset int64) {
			if offset < end {
				t.Errorf("record at %d begins before the last one ended at %d", offset, end)
			}
			end = offset + headerBytes + int64(h.length)
			if end > int64(len(raw)) {
				t.Errorf("record at %d ends at %d, behind the segment's %d bytes", offset, end, len(raw))
			}
		})
		if err != nil {
			t.Errorf("scan = %v, and no read failed", err)
		}
		if len(raw) > 0 && end == 0 && found.records == 0 && found.torn == 0 {
			t.Error("nothing was read and nothing is said to be wrong")
		}
	})
}

// FuzzOpen puts arbitrary bytes in place of a segment: the spool opens, hands out
// what is whole, and goes on with numbers that the segment does not hold.
func FuzzOpen(f *testing.F) {
	f.Add(written(1, 2, 3))
	f.Add(append(written(7), appendRecord(nil, header{kind: kindAck, sequence: 7}, []byte("boot"))...))
	f.Add(appendRecord(written(3), header{kind: kindMark, sequence: 9}, nil))
	f.Add(flipped(written(1, 2, 3), headerBytes+2))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := newMemory()
		m.files[formatName(1, "boot")] = &memoryFile{data: raw}
		s, err := open(m, "boot", testConfig(), func(string, uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if s.last > 1<<62 {
			return // no honest spool counts so far
		}
		sequence, err := s.Append(1, func(uint64) ([]byte, error) { return []byte("new"), nil })
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for at := Position(0); ; seen++ {
			b, next, ok := s.Read(at)
			if !ok {
				break
			}
			if string(b.Data) != "new" && b.Sequence >= sequence {
				t.Errorf("sequence %d was given out again", b.Sequence)
			}
			at = next
		}
		if held := s.Stats().Batches; held != seen {
			t.Errorf("stats say %d batches are held, %d were read", held, seen)
		}
		s.Ack("boot", sequence)
		if st := s.Stats(); st.Batches != 0 || st.Samples != 0 || st.Bytes != 0 {
			t.Errorf("after the last acknowledgement: %+v", st)
		}
	})
}
