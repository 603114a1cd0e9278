// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"log/slog"
	"sync"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/symbol/elf"
)

const (
	sweepEvery  = 5 * time.Second
	forgetAfter = 5 * time.Minute  // processes that were not sampled
	forgetDead  = 30 * time.Second // processes that ended
	closeWait   = time.Second
)

// A Symbolizer gives names to addresses. It may be used by several goroutines.
type Symbolizer struct {
	cfg   Config
	roots Roots
	lost  collector.Lost
	log   *slog.Logger
	now   func() time.Time

	tasks    *tasks
	files    *files
	registry *registry
	vdso     *object // nil when it could not be read

	mu        sync.Mutex
	serials   uint64
	in        *interner
	places    *cache[place64, *profile.Location]
	spans     *cache[place64, span] // by table and the nearest start in it
	processes map[int]*process
	kernel    *kernel
	stats     Stats

	stop    chan struct{}
	stopped sync.WaitGroup
}

// A span is a run of virtual addresses of a file that have one location.
type span struct {
	elf.Span
	location *profile.Location
}

// place64 is an address of a process, or an offset into an object, by its serial.
type place64 struct{ owner, at uint64 }

// New makes a Symbolizer. It reports samples to lost that it had to leave
// without names because of who they belong to: under "exited" when the process had ended
// before it was first looked at, under "exec" when it became another program
// between the sample and the look. Close releases what it holds.
func New(cfg Config, roots Roots, lost collector.Lost, log *slog.Logger) (*Symbolizer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Symbolizer{
		cfg: cfg, roots: roots, lost: lost, log: log, now: time.Now,
		tasks:     newTasks(),
		registry:  &registry{byID: map[fileID]*object{}, byBuildID: map[string]*object{}},
		in:        newInterner(cfg.Locations),
		places:    newCache[place64, *profile.Location](cfg.Addresses),
		spans:     newCache[place64, span](cfg.Locations),
		processes: map[int]*process{},
		stats:     Stats{Unnamed: map[string]uint64{}},
		stop:      make(chan struct{}),
	}
	s.files = &files{host: roots.Files, now: s.now, open: map[fileID]*openFile{}}
	s.kernel = newKernel(s.serial(), roots)
	s.kernel.refresh(s, s.now())

	image, err := readVDSO()
	if err == nil {
		s.vdso, err = loadVDSO(image, cfg.functions())
	}
	if err != nil {
		log.Info("the vdso's functions stay without names", "error", err)
	} else {
		s.admit(s.vdso, vdsoName)
	}

	s.stopped.Add(1)
	go s.sweep()
	return s, nil
}

// serial is a number never given before.
func (s *Symbolizer) serial() uint64 {
	s.serials++
	return s.serials
}

// Close lets go of every file. Samples put afterwards pass through unnamed. It waits a second
// for files that do not answer.
func (s *Symbolizer) Close() error {
	s.mu.Lock()
	select {
	case <-s.stop:
		s.mu.Unlock()
		return nil
	default:
	}
	close(s.stop)
	for _, p := range s.processes {
		s.forget(p)
	}
	s.mu.Unlock()

	s.stopped.Wait()
	if !s.tasks.close(closeWait) {
		s.log.Warn("a file does not answer; its reader is left behind")
	}
	s.files.closeIdle(s.now().Add(time.Hour))
	return nil
}

func (s *Symbolizer) closed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// sweep lets go of what was not asked for, and of the most when too much is held.
func (s *Symbolizer) sweep() {
	defer s.stopped.Done()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			now := s.now()
			s.files.closeIdle(now.Add(-openIdle))
			s.sweepProcesses(now)
		}
	}
}

func (s *Symbolizer) sweepProcesses(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		idle := now.Sub(p.used)
		if idle > forgetAfter || p.dead && idle > forgetDead {
			s.forget(p)
			continue
		}
		if now.Sub(p.since) > forgetDead {
			p.previous = nil
		}
	}
}

// Stats is what a Symbolizer did and holds.
type Stats struct {
	Named   uint64            // frames that got a name
	Unnamed map[string]uint64 // frames that did not, by reason, a word of a fixed list

	Processes  int
	Files      int    // whose tables are in memory
	Open       int    // files held open
	TableBytes int64  // of symbol tables
	Evicted    uint64 // tables let go of to keep within Config.CacheBytes
	Addresses  int    // remembered
	Locations  int    // remembered
}

// Reasons for a frame without a name.
const (
	unnamedNoSymbol = "no symbol"    // the file's tables have none for the address
	unnamedNoFile   = "no file"      // code made at run time that no perf map names
	unnamedUnmapped = "unmapped"     // the address lies in no mapping
	unnamedProcess  = "process"      // the process ended, became another, or may not be looked at
	unnamedSlow     = "slow"         // a file or /proc did not answer in time
	unnamedFile     = "unreadable"   // the file cannot be opened, or was replaced
	unnamedFormat   = "format"       // the file is damaged, or no ELF file that is read
	unnamedTooLarge = "too large"    // the file has a table beyond the limits
	unnamedKernel   = "kernel"       // kernel symbols are hidden or have none for the address
	unnamedUnknown  = "unknown file" // a frame that came with a build-id which no file seen has
)

// Stats returns the numbers so far.
func (s *Symbolizer) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Unnamed = make(map[string]uint64, len(s.stats.Unnamed))
	for reason, n := range s.stats.Unnamed {
		st.Unnamed[reason] = n
	}
	st.Processes = len(s.processes)
	st.Files, st.TableBytes, st.Evicted = s.registry.held()
	st.TableBytes += s.kernel.bytes() + s.jitBytes()
	st.Open = s.files.len()
	st.Addresses, st.Locations = s.places.len(), s.in.locations.len()
	return st
}
