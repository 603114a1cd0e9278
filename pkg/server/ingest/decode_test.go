// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"errors"
	"hash/crc32"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServer has nothing behind it: enough to decode.
func testServer(t testing.TB) *Server {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Server = "test"
	s, err := New(cfg, Parts{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var packer, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))

func pack(_ testing.TB, raw []byte) []byte { return packer.EncodeAll(raw, nil) }

// spin is a profile with one sample in spin, called by main.
func spin(t testing.TB, node, function string) []byte {
	t.Helper()
	m := &profile.Mapping{Path: "/bin/busy"}
	r := profile.Record{Subject: &profile.Subject{PID: 7, Comm: "busy"}, Stack: profile.Stack{
		{Location: &profile.Location{Mapping: m, Offset: 2, Lines: []profile.Line{{Function: function}}}},
		{Location: &profile.Location{Mapping: m, Offset: 1, Lines: []profile.Line{{Function: "main"}}}},
	}}
	r.Values[profile.CPU] = 5
	raw, err := pprofio.Marshal(&profile.Batch{Start: time.Now(), End: time.Now(), Records: []profile.Record{r}}, pprofio.Meta{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// valid is a batch that is taken; edit makes it otherwise, and then it is sealed.
func valid(t testing.TB, edit func(*diagonv1.Batch)) *diagonv1.Batch {
	t.Helper()
	now := time.Now()
	b := &diagonv1.Batch{
		Node: "n", BootId: "b", Sequence: 1, StartUnixNano: now.Add(-time.Second).UnixNano(), EndUnixNano: now.UnixNano(),
		ProfileZstd: pack(t, spin(t, "n", "spin")),
	}
	if edit != nil {
		edit(b)
	}
	b.Crc32C = crc32.Checksum(b.ProfileZstd, castagnoli)
	return b
}

// bomb is n bytes of zeros in zstd, made of frames of 64 MiB, a few KiB each.
func bomb(t testing.TB, n int64) []byte {
	t.Helper()
	const frame = 64 << 20
	one := pack(t, make([]byte, frame))
	return bytes.Repeat(one, int(n/frame))
}

func TestWhatIsWrongWithABatchIsSaid(t *testing.T) {
	s := testServer(t)
	for _, tt := range []struct {
		name string
		edit func(*diagonv1.Batch)
		want string // of the refusal
	}{
		{"a number of zero", func(b *diagonv1.Batch) { b.Sequence = 0 }, "sequence: "},
		{"a number beyond the database's", func(b *diagonv1.Batch) { b.Sequence = math.MaxUint64 }, "sequence: "},
		{"an end before the start", func(b *diagonv1.Batch) { b.EndUnixNano = b.StartUnixNano - 1 }, "time: window"},
		{"a window of a day", func(b *diagonv1.Batch) { b.StartUnixNano = time.Now().Add(-24 * time.Hour).UnixNano() }, "time: window"},
		{"a clock an hour ahead", func(b *diagonv1.Batch) {
			b.StartUnixNano, b.EndUnixNano = time.Now().Add(time.Hour).UnixNano(), time.Now().Add(time.Hour).UnixNano()
		}, "in the future"},
		{"a clock at 1970", func(b *diagonv1.Batch) { b.StartUnixNano, b.EndUnixNano = 0, 1 }, "older than"},
		{"bytes that are not zstd", func(b *diagonv1.Batch) { b.ProfileZstd = []byte("pprof") }, "zstd: "},
		{"a zstd frame cut short", func(b *diagonv1.Batch) { b.ProfileZstd = b.ProfileZstd[:len(b.ProfileZstd)/2] }, "zstd: "},
		{"a profile cut short", func(b *diagonv1.Batch) {
			raw := spin(t, "n", "spin")
			b.ProfileZstd = pack(t, raw[:len(raw)-3])
		}, "profile: "},
		{"random bytes for a profile", func(b *diagonv1.Batch) { b.ProfileZstd = pack(t, []byte("\xff\xfe\x00random")) }, "profile: "},
		{"the profile of another node", func(b *diagonv1.Batch) { b.ProfileZstd = pack(t, spin(t, "other", "spin")) }, "node: "},
		{"a reading without a name", func(b *diagonv1.Batch) { b.Readings = []*diagonv1.Reading{{Value: 1}} }, "readings: "},
		{"a reading with a label twice", func(b *diagonv1.Batch) {
			b.Readings = []*diagonv1.Reading{{Metric: "m", Labels: []*diagonv1.Label{{Name: "a"}, {Name: "b"}, {Name: "a"}}}}
		}, "comes twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, held, err := s.decode(t.Context(), valid(t, tt.edit))
			var refused *refusal
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("err = %v, want a refusal saying %q", err, tt.want)
			}
			if held != 0 || !s.inflight.TryAcquire(s.cfg.Inflight) {
				t.Fatal("a refused batch keeps some of the bound")
			}
			s.inflight.Release(s.cfg.Inflight)
		})
	}
}

func TestAChangedByteIsSeen(t *testing.T) {
	s := testServer(t)
	b := valid(t, nil)
	b.ProfileZstd[len(b.ProfileZstd)/2] ^= 1
	if _, _, err := s.decode(t.Context(), b); err == nil || !strings.HasPrefix(err.Error(), "crc: ") {
		t.Errorf("err = %v", err)
	}
}

func TestABatchKeepsWhatItSays(t *testing.T) {
	s := testServer(t)
	out, held, err := s.decode(t.Context(), valid(t, func(b *diagonv1.Batch) {
		b.ProfileZstd = pack(t, spin(t, "n", "sp\xffin\x00"))
		b.Losses = []*diagonv1.Loss{{Place: "ring", Count: 3}}
		b.Readings = []*diagonv1.Reading{
			{Metric: "m", Value: 1, Labels: []*diagonv1.Label{{Name: "z", Value: "1"}, {Name: "a", Value: "2"}}},
			{Metric: "m", Value: math.NaN()},
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.inflight.Release(held)
	if got := out.Records[0].Stack.String(); got != "sp\uFFFDin\uFFFD main" {
		t.Errorf("stack %q", got)
	}
	if len(out.Losses) != 1 || out.Losses[0] != (profile.Loss{Place: "ring", Count: 3}) {
		t.Errorf("losses %v", out.Losses)
	}
	if len(out.Readings) != 1 || out.Readings[0].Labels[0].Name != "a" {
		t.Errorf("readings %v", out.Readings)
	}
}

// Four GiB in half a megabyte: the answer comes before the memory is spent.
func TestAZstdBombIsRefusedInBoundedMemory(t *testing.T) {
	s := testServer(t)
	b := valid(t, func(b *diagonv1.Batch) { b.ProfileZstd = bomb(t, 4<<30) })
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := s.decode(t.Context(), b)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.HasPrefix(err.Error(), "zstd: ") {
		t.Fatalf("err = %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 3*uint64(s.cfg.Profile.Bytes) {
		t.Errorf("allocated %d MiB to refuse %d KiB", grown>>20, len(b.ProfileZstd)>>10)
	}
}

func FuzzBatch(f *testing.F) {
	for _, edit := range []func(*diagonv1.Batch){
		nil,
		func(b *diagonv1.Batch) { b.ProfileZstd = nil },
		func(b *diagonv1.Batch) { b.Readings = []*diagonv1.Reading{{Metric: "m", Value: 1}} },
	} {
		b := valid(f, edit)
		raw, err := proto.Marshal(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, []byte(nil))
	}
	f.Add([]byte(nil), spin(f, "n", "spin"))
	s := testServer(f)
	f.Fuzz(func(t *testing.T, wire, pprof []byte) {
		b := &diagonv1.Batch{}
		if proto.Unmarshal(wire, b) != nil {
			b = valid(t, nil)
		}
		if len(pprof) > 0 { // a profile that arrived whole, however odd it is
			b = valid(t, func(v *diagonv1.Batch) { v.ProfileZstd = pack(t, pprof) })
		} else {
			b.Crc32C = crc32.Checksum(b.ProfileZstd, castagnoli)
		}
		out, held, err := s.decode(t.Context(), b)
		if err != nil {
			return
		}
		s.inflight.Release(held)
		if out.Start.After(out.End) || out.Sequence == 0 {
			t.Errorf("took a batch from %v to %v, number %d", out.Start, out.End, out.Sequence)
		}
		for _, r := range out.Records {
			if s := r.Stack.String(); strings.ToValidUTF8(s, "") != s || strings.Contains(s, "\x00") {
				t.Errorf("stack %q is no text", s)
			}
		}
	})
}
