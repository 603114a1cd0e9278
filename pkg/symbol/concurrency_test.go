// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
)

func TestTheStageTakesSamplesFromSeveralGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work")
	compile(t, path, "shown")
	s, _ := start(t)
	p := run(t, exec.CommandContext(t.Context(), path))
	at := p.addresses(t)
	pcs := make([]uintptr, 32)
	own := pcs[:runtime.Callers(0, pcs)]

	sink := s.Into(collector.SinkFunc(func(sample profile.Sample) {
		for i, f := range sample.Stack {
			if f.Location == nil {
				t.Errorf("frame %d of %d has no location", i, sample.PID)
			}
		}
	}))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 200 {
				stack := user(at.shown+uint64(i%8), at.main+9)
				pid := p.Process.Pid
				if i%2 == 0 {
					stack, pid = nil, os.Getpid()
					for _, pc := range own {
						stack = append(stack, user(uint64(pc))...)
					}
				}
				sink.Put(profile.Sample{Time: time.Now(), PID: pid, Stack: stack})
				s.Stats()
			}
		})
	}
	group.Wait()
}

func TestFilesThatDoNotAnswerDoNotStopOthers(t *testing.T) {
	work := newTasks()
	release := make(chan struct{})
	var stuck []*task
	for range maxTasks {
		stuck = append(stuck, work.start(func() { <-release }))
	}
	if stuck[0].wait(time.Millisecond) || !stuck[0].pending() {
		t.Error("work that is not done counts as done")
	}
	if work.start(func() {}) != nil {
		t.Error("more work than the limit was begun")
	}
	if work.close(time.Millisecond) {
		t.Error("close did not notice the work under way")
	}
	close(release)
	for _, w := range stuck {
		if !w.wait(5 * time.Second) {
			t.Error("work that is done counts as under way")
		}
	}
	if done := work.start(func() {}); !done.wait(5*time.Second) || !work.close(5*time.Second) {
		t.Error("after the files have answered no work is done")
	}
	if work.start(func() {}) != nil {
		t.Error("work was begun after close")
	}
}

func TestFramesThatCameWithTheirPlaceInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work")
	compile(t, path, "shown")
	is := tell(t, path)
	s, _ := start(t)
	placed := func(buildID string) *profile.Location {
		return &profile.Location{Realm: profile.RealmUser, Offset: is.offsets["shown"] + 5,
			Mapping: &profile.Mapping{Path: "/elsewhere/work", BuildID: buildID}}
	}
	before := placed(is.buildID)
	if got := resolve(t, s, 0, profile.Frame{Location: before})[0].Location; got != before {
		t.Errorf("a file never seen gave %+v", got)
	}
	p := run(t, exec.CommandContext(t.Context(), path))
	at := p.addresses(t)
	resolve(t, s, p.Process.Pid, user(at.main+5)...)
	wantFunction(t, resolve(t, s, 0, profile.Frame{Location: placed(is.buildID)})[0].Location, "shown", is)
	other := placed(strings.Repeat("0", 40))
	if got := resolve(t, s, 0, profile.Frame{Location: other})[0].Location; got != other {
		t.Errorf("another build-id gave %+v", got)
	}
}

func TestSyntheticFramesAndTheAddressesAboveThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work")
	compile(t, path, "shown")
	s, _ := start(t)
	p := run(t, exec.CommandContext(t.Context(), path))
	at := p.addresses(t)
	request := &profile.Location{Realm: profile.RealmSynthetic, Lines: []profile.Line{{Function: "ioctl:NV_ESC"}}}
	for _, tt := range []struct {
		name  string
		stack []profile.Frame
		want  string
	}{
		{"the innermost address is where the CPU was", user(at.shown, at.main+9), "shown main"},
		{"a return address belongs to the call before it", user(at.main+9, at.shown), "main hidden"},
		{"a frame of no address changes nothing", append([]profile.Frame{{Realm: profile.RealmSynthetic, Location: request}}, user(at.shown)...), "ioctl:NV_ESC shown"},
		{"the innermost address below the kernel is no return address", append(kernelFrames(1), user(at.shown)...), "shown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := resolve(t, s, p.Process.Pid, tt.stack...).String()
			if !strings.HasSuffix(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTablesAreLetGoOfWhenTheyDoNotFit(t *testing.T) {
	g := &registry{byID: map[fileID]*object{}, byBuildID: map[string]*object{}}
	now := time.Now()
	var all []*object
	for i := range 4 {
		o := &object{id: fileID{inode: uint64(i + 1)}, buildID: fmt.Sprint(i), bytes: 100, used: now.Add(time.Duration(i) * time.Second)}
		all = append(all, o)
		if g.add(o) != o {
			t.Fatal("an object that is new was there")
		}
	}
	if again := g.add(&object{id: fileID{inode: 1}}); again != all[0] {
		t.Error("a file has two objects")
	}
	if got := g.evict(250, all[0]); len(got) != 2 || got[0] != all[1] || got[1] != all[2] {
		t.Errorf("dropped %v, want the two used least recently but for the one in use", got)
	}
	if files, bytes, evicted := g.held(); files != 2 || bytes != 200 || evicted != 2 || g.find("1") != nil || g.find("3") != all[3] {
		t.Errorf("holds %d files, %d bytes, %d evicted", files, bytes, evicted)
	}
}

func TestCacheForgetsWhatWasNotUsed(t *testing.T) {
	c := newCache[int, int](100)
	for i := range 1000 {
		c.put(i, i)
		if v, ok := c.get(0); !ok || v != 0 {
			t.Fatalf("what is asked for again and again was forgotten after %d", i)
		}
		if c.len() > 101 {
			t.Fatalf("%d entries", c.len())
		}
	}
	if _, ok := c.get(500); ok || c.evicted == 0 {
		t.Error("what was not used is still there")
	}
}

func TestConfigNamesTheFieldOutOfBounds(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	c := DefaultConfig()
	c.CacheBytes = 10
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "CacheBytes") {
		t.Errorf("err = %v", err)
	}
}
