// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/uplink/spool"
	"diagon.dev/diagon/pkg/uplink/uplinktest"
)

// wantAll checks that the server holds batches 0 to n-1, each once and in order.
func wantAll(t *testing.T, state *uplinktest.State, n int) {
	t.Helper()
	got := state.Batches()
	if len(got) != n {
		t.Fatalf("the server holds %d batches, want %d", len(got), n)
	}
	for i, b := range got {
		if b.GetSamples() != uint64(i) || !bytes.Equal(b.GetProfileZstd(), batch(i).GetProfileZstd()) {
			t.Errorf("in place %d is batch %d", i, b.GetSamples())
		}
	}
}

func push(t testing.TB, a *agent, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := a.PushBatch(batch(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingIsLostOrStoredTwiceWhenTheServerIsKilled(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	a := start(t, quick(t, server.Address))
	const lives, each = 5, 40
	for life := range lives {
		push(t, a, life*each, (life+1)*each)
		eventually(t, "some batches arrive", func() bool { return len(state.Batches()) > life*each })
		server.Kill()
		server = uplinktest.Start(t, server.Address, state, uplinktest.Behaviour{})
	}
	flush(t, a)
	wantAll(t, state, lives*each)
	if n := a.lostAt("spool") + a.lostAt("rejected"); n > 0 {
		t.Errorf("%d samples are said to be lost", n)
	}
	if st := a.Stats(); st.BatchesAcked != lives*each || st.Connects < 2 {
		t.Errorf("%d batches acknowledged over %d connections", st.BatchesAcked, st.Connects)
	}
}

func TestNothingIsLostOrStoredTwiceWhenConnectionsAreCutAnywhere(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	a := start(t, quick(t, proxy.Address))
	const cuts, each = 30, 10
	for i := range cuts {
		proxy.CutAfter(rand.Int64N(8 << 10))
		push(t, a, i*each, (i+1)*each)
		time.Sleep(rand.N(10 * time.Millisecond))
	}
	proxy.CutAfter(-1)
	flush(t, a)
	wantAll(t, state, cuts*each)
	t.Logf("%d connections, %d batches sent again", a.Stats().Connects, state.Resent())
}

func TestANetworkThatSwallowsEverythingIsNoticedAndLeft(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	cfg := quick(t, proxy.Address)
	cfg.AnswerTimeout, cfg.ConnectTimeout = 300*time.Millisecond, 300*time.Millisecond
	a := start(t, cfg)
	push(t, a, 0, 10)
	flush(t, a)

	proxy.Mute(true)
	push(t, a, 10, 20)
	eventually(t, "the push gives up waiting", func() bool {
		return errors.Is(a.Stats().LastError, errSilent)
	})
	proxy.Mute(false)
	proxy.Cut() // what keepalive does after its minute
	flush(t, a)
	wantAll(t, state, 20)
}

func TestAnOutageFillsTheSpoolAndTheLossesShownAreTheLossesMade(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	proxy.Refuse(true)
	cfg := quick(t, proxy.Address)
	cfg.Spool.Batches = 50
	a := start(t, cfg)
	const n = 120
	push(t, a, 0, n)
	proxy.Refuse(false)
	flush(t, a)

	var arrived, made uint64
	for _, b := range state.Batches() {
		arrived += b.GetSamples()
	}
	for i := range n {
		made += uint64(max(i, 1)) // batch 0 has readings only; its loss counts as one
	}
	if lost := a.lostAt("spool"); arrived+lost != made || lost == 0 {
		t.Errorf("%d samples arrived and %d are said to be lost, of %d", arrived, lost, made)
	}
	if first := state.Batches()[0]; first.GetSamples() != n-50 {
		t.Errorf("the oldest batch kept is %d, want %d", first.GetSamples(), n-50)
	}
}

func TestCreditIsRespected(t *testing.T) {
	const credit = 10 << 10
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{Credit: credit, HoldAcks: true})
	a := start(t, quick(t, server.Address))
	push(t, a, 0, 100)
	eventually(t, "the window is filled", func() bool { return state.Owed() > credit/2 })
	time.Sleep(100 * time.Millisecond) // room for the mistake to show
	if owed := state.Owed(); owed > credit {
		t.Errorf("%d bytes are in flight, credit is %d", owed, credit)
	}
	if held := a.Stats().Spool.Batches; held != 100 {
		t.Errorf("%d batches are spooled, want all 100: none was acknowledged", held)
	}
}

func TestABatchLargerThanTheCreditGoesAlone(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{Credit: 100})
	a := start(t, quick(t, server.Address))
	push(t, a, 0, 5)
	flush(t, a)
	wantAll(t, state, 5)
}

func TestRejectedBatchesAreCountedAndGone(t *testing.T) {
	for _, tt := range []struct {
		name string
		how  uplinktest.Behaviour
	}{
		{"named in an answer", uplinktest.Behaviour{Reject: func(b *diagonv1.Batch) string {
			if b.GetSamples()%10 == 7 {
				return "too old"
			}
			return ""
		}}},
		{"by the end of the stream, unnamed", uplinktest.Behaviour{Batch: func(b *diagonv1.Batch) error {
			if b.GetSamples()%10 == 7 {
				return status.Error(codes.InvalidArgument, "no profile")
			}
			return nil
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := uplinktest.NewState()
			server := uplinktest.Start(t, "127.0.0.1:0", state, tt.how)
			a := start(t, quick(t, server.Address))
			push(t, a, 0, 30)
			flush(t, a)
			if got := len(state.Batches()); got != 27 {
				t.Errorf("the server holds %d batches, want 27", got)
			}
			if got, want := a.lostAt("rejected"), uint64(7+17+27); got != want {
				t.Errorf("%d samples are said to be rejected, want %d", got, want)
			}
			if st := a.Stats(); st.BatchesRejected != 3 || st.BatchesAcked != 27 {
				t.Errorf("%d rejected, %d acknowledged; want 3, 27", st.BatchesRejected, st.BatchesAcked)
			}
		})
	}
}

func TestAFullStoreIsWaitedForAndOrdersGoOnMeanwhile(t *testing.T) {
	full, err := status.New(codes.ResourceExhausted, "the store is full").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(300 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan time.Time, 1)
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{Batch: func(*diagonv1.Batch) error {
		select {
		case refused <- time.Now():
			return full.Err()
		default:
			return nil
		}
	}})
	a := start(t, quick(t, server.Address))
	push(t, a, 0, 3)
	eventually(t, "the push is refused", func() bool { return len(refused) == 1 })
	server.Order(capture("c1"))
	eventually(t, "the order arrives", func() bool { return len(a.taken()) == 1 })
	flush(t, a)
	if waited := time.Since(<-refused); waited < 300*time.Millisecond {
		t.Errorf("tried again after %v, and was asked to wait 300 ms", waited)
	}
	if err := a.Stats().LastError; status.Code(err) != codes.ResourceExhausted {
		t.Errorf("last error = %v, want that the store is full", err)
	}
	if st := a.Stats(); st.Connects != 1 {
		t.Errorf("%d connections, want 1: only the push had failed", st.Connects)
	}
	wantAll(t, state, 3)
}

func TestBatchesOfAnEarlierBootGoFirstUnderTheirOwnName(t *testing.T) {
	const bootB = "0f0e0d0c-7d44-4ac0-8a4e-e5a3bb1ff1f7"
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	proxy := uplinktest.NewProxy(t, server.Address)
	proxy.Refuse(true)
	cfg := quick(t, proxy.Address)
	a := start(t, cfg)
	push(t, a, 0, 5)
	a.stop()

	b := startBoot(t, cfg, bootB, new(node))
	push(t, b, 5, 10)
	proxy.Refuse(false)
	flush(t, b)
	wantAll(t, state, 10)
	for i, got := range state.Batches() {
		want := bootA
		if i >= 5 {
			want = bootB
		}
		if got.GetBootId() != want {
			t.Errorf("batch %d is of boot %s, want %s", i, got.GetBootId(), want)
		}
	}
}

func TestBatchesUnderAnEarlierNameOfTheNodeGoOverAStreamOfTheirOwn(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	cfg := quick(t, "127.0.0.1:1")
	a := start(t, cfg)
	push(t, a, 0, 5)
	a.stop()
	cfg.Channel = server.Address
	b := startAs(t, cfg, Identity{Node: "renamed", BootID: bootA}, new(node))
	push(t, b, 5, 10)
	flush(t, b)
	wantAll(t, state, 10)
	for i, got := range state.Batches() {
		want := "n1"
		if i >= 5 {
			want = "renamed"
		}
		if got.GetNode() != want {
			t.Errorf("batch %d is of node %s, want %s", i, got.GetNode(), want)
		}
	}
}

func TestAnAgentThatIsStartedAgainGoesOnWhereItWas(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	cfg := quick(t, server.Address)
	for life := range 3 {
		a := start(t, cfg)
		push(t, a, life*20, (life+1)*20)
		if life == 2 {
			flush(t, a)
		}
		a.stop()
	}
	wantAll(t, state, 60)
}

func TestAWipedFolderUsesNoNumberTwice(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	for life := range 3 {
		a := start(t, quick(t, server.Address)) // a new folder each time
		push(t, a, life*20, (life+1)*20)
		flush(t, a)
		a.stop()
	}
	wantAll(t, state, 60)
}

func TestWhatCannotBeSpooledIsCounted(t *testing.T) {
	for _, tt := range []struct {
		name string
		data func(t *testing.T) string
		big  int
		want error
	}{
		{name: "a batch larger than the wire takes", data: func(t *testing.T) string { return t.TempDir() }, big: 5 << 20},
		{name: "a full disk", data: fullDisk, want: syscall.ENOSPC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := quick(t, "127.0.0.1:1")
			cfg.Data = tt.data(t)
			a := start(t, cfg)
			b := batch(9)
			b.ProfileZstd = append(b.ProfileZstd, make([]byte, tt.big)...)
			err := a.PushBatch(b)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("PushBatch = %v, want %v", err, tt.want)
			}
			if lost := a.lostAt("spool"); lost != 9 {
				t.Errorf("%d samples are said to be lost, want 9", lost)
			}
			if st := a.Stats(); st.BatchesUnspooled != 1 || st.SamplesUnspooled != 9 {
				t.Errorf("%d batches of %d samples unspooled, want 1 of 9", st.BatchesUnspooled, st.SamplesUnspooled)
			}
			a.stop()
		})
	}
}

// fullDisk is a folder with a spool in it, on a file system without a free byte.
func fullDisk(t *testing.T) string {
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")
	if errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: mount a tmpfs: %w", collector.ErrUnavailable, err)
	}
	if errors.Is(err, collector.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
	s, err := spool.Open(filepath.Join(dir, "spool"), bootA, spool.DefaultConfig(), func(string, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 128<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk = %v, want ENOSPC", err)
	}
	return dir
}

func TestWithoutAFolderBatchesAreKeptInMemory(t *testing.T) {
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{})
	cfg := quick(t, server.Address)
	cfg.Data = "/proc/diagon" // nobody can make a folder there, root neither
	a := start(t, cfg)
	push(t, a, 0, 10)
	flush(t, a)
	wantAll(t, state, 10)
	if !a.Stats().Spool.InMemory || !strings.Contains(a.log.String(), "kept in memory") {
		t.Errorf("in memory: %v, log:\n%s", a.Stats().Spool.InMemory, a.log)
	}
}

func TestTwoAgentsDoNotShareAFolder(t *testing.T) {
	cfg := quick(t, "127.0.0.1:1")
	start(t, cfg)
	n := new(node)
	if _, err := New(cfg, Identity{Node: "n1", BootID: bootA}, n, n, n.lose, nil); !errors.Is(err, spool.ErrLocked) {
		t.Errorf("a second New = %v, want ErrLocked", err)
	}
}
