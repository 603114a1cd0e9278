// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/symbol/elf"
	"diagon.dev/diagon/pkg/symbol/kallsyms"
)

const (
	kernelName = "[kernel]"

	// Whether modules came or went is looked at every modulesEvery. Without that,
	// kallsyms, which costs the kernel some 40 ms of CPU to print and us to read, is read again when an address is not
	// found, first after kernelFirst, then twice as long each time, up to kernelLast; and
	// every kernelLast anyway, because BPF programs come and go unannounced.
	modulesEvery = 10 * time.Second
	kernelFirst  = 30 * time.Second
	kernelLast   = 15 * time.Minute
)

// KernelSymbols reports whether this process may see the kernel's symbols. The
// error wraps collector.ErrUnavailable and says what is missing.
func KernelSymbols(roots Roots) error {
	f, err := os.Open(filepath.Join(roots.Proc, "kallsyms"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("kernel symbols: %w: %w", collector.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("kernel symbols: %w", err)
	}
	defer f.Close()
	err = kallsyms.Visible(f)
	if errors.Is(err, kallsyms.ErrHidden) {
		return fmt.Errorf("kernel symbols: %w: %w: needs CAP_SYSLOG and kernel.kptr_restrict below 2", collector.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("kernel symbols: %w", err)
	}
	return nil
}

// A kernel is what is known of the kernel's functions.
type kernel struct {
	roots    Roots
	serial   uint64 // owner of its addresses in Symbolizer.places
	image    kernelImage
	mappings map[string]*profile.Mapping // by module

	pending *task
	next    *kernelImage
	read    time.Time // kallsyms read
	checked time.Time
	reread  time.Time // not before
	backoff time.Duration
	missed  bool // an address was not found since
}

// A kernelImage is one reading.
type kernelImage struct {
	table   *kallsyms.Table // nil: see err
	buildID string
	modules uint64 // checksum of /proc/modules
	err     error
	same    bool // nothing has changed, table is not set
}

func newKernel(serial uint64, roots Roots) *kernel {
	return &kernel{serial: serial, roots: roots, mappings: map[string]*profile.Mapping{}}
}

// readKernel reads kallsyms, unless it is not forced to and no module came or went.
func readKernel(roots Roots, modules uint64, force bool) kernelImage {
	im := kernelImage{modules: modulesSum(roots)}
	if !force && im.modules == modules {
		im.same = true
		return im
	}
	f, err := os.Open(filepath.Join(roots.Proc, "kallsyms"))
	if err != nil {
		im.err = err
		return im
	}
	defer f.Close()
	im.table, im.err = kallsyms.Parse(f)
	im.buildID = noteBuildID(filepath.Join(roots.Sys, "kernel/notes"))
	return im
}

// modulesSum tells one set of modules from another. A kernel without modules has none.
func modulesSum(roots Roots) uint64 {
	f, err := os.Open(filepath.Join(roots.Proc, "modules"))
	if err != nil {
		return 0
	}
	defer f.Close()
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	if _, err := io.Copy(sum, io.LimitReader(f, 4<<20)); err != nil {
		return 0
	}
	return sum.Sum64()
}

// noteBuildID reads the build-id of the kernel or of a module from sysfs.
func noteBuildID(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	notes, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	gnu, _ := elf.BuildIDs(notes)
	return gnu
}

func (k *kernel) bytes() int64 {
	if k.image.table == nil {
		return 0
	}
	return k.image.table.Bytes()
}

// refresh starts a reading when one is due, and takes what the last one brought.
func (k *kernel) refresh(s *Symbolizer, now time.Time) {
	if k.pending.pending() {
		return
	}
	if k.next != nil {
		k.settle(s, now)
	}
	force := k.read.IsZero() || now.Sub(k.read) > kernelLast || k.missed && !now.Before(k.reread)
	if !force && now.Sub(k.checked) < modulesEvery {
		return
	}
	next, roots, modules := &kernelImage{}, k.roots, k.image.modules
	if started := s.tasks.start(func() { *next = readKernel(roots, modules, force) }); started != nil {
		k.pending, k.next, k.checked = started, next, now
	}
}

func (k *kernel) settle(s *Symbolizer, now time.Time) {
	next := *k.next
	k.next, k.pending = nil, nil
	if next.same {
		return
	}
	if k.read.IsZero() && next.err != nil {
		s.log.Info("kernel functions stay without names", "error", next.err)
	}
	if next.table == nil && k.image.table != nil {
		next.table, next.buildID = k.image.table, k.image.buildID
	}
	k.backoff = min(max(2*k.backoff, kernelFirst), kernelLast)
	if next.modules != k.image.modules {
		k.backoff = kernelFirst
	}
	k.image, k.read, k.reread, k.missed = next, now, now.Add(k.backoff), false
	k.serial = s.serial()
	clear(k.mappings) // a module may be back in another version
}

// mapping is the kernel's or a module's.
func (k *kernel) mapping(in *interner, module string) *profile.Mapping {
	if m := k.mappings[module]; m != nil {
		return m
	}
	name, buildID := kernelName, k.image.buildID
	if module != "" {
		name = module
		buildID = noteBuildID(filepath.Join(k.roots.Sys, "module", filepath.Base(module), "notes/.note.gnu.build-id"))
	}
	m := in.mapping(name, buildID, fileID{})
	k.mappings[module] = m
	return m
}

// kernel names a kernel address.
func (v *visit) kernel(at address) (*profile.Location, string) {
	k, s := v.s.kernel, v.s
	k.refresh(s, v.now)
	if k.read.IsZero() && k.pending != nil { // the first reading
		if !k.pending.wait(v.deadline.Sub(s.now())) {
			return v.unnamedKernel(at), unnamedSlow
		}
		k.settle(s, v.now)
	}
	pc := at.lookup()
	if l, ok := s.places.get(place64{k.serial, pc}); ok {
		return l, unnamedKernel
	}
	if k.image.table == nil {
		return v.unnamedKernel(at), unnamedKernel
	}
	symbol, ok := k.image.table.Lookup(pc)
	if !ok {
		k.missed = true
		return v.unnamedKernel(at), unnamedKernel
	}
	l := s.in.location(profile.Location{
		Realm: profile.RealmKernel, Mapping: k.mapping(s.in, symbol.Module), Offset: symbol.Offset,
		Lines: []profile.Line{{Function: symbol.Name}},
	})
	s.places.put(place64{k.serial, pc}, l)
	return l, ""
}

// unnamedKernel is a kernel address without a name, relative to the kernel's text
// where that is known: it lies elsewhere after every boot.
func (v *visit) unnamedKernel(at address) *profile.Location {
	k := v.s.kernel
	off := at.lookup()
	if k.image.table != nil && off >= k.image.table.Text() {
		off -= k.image.table.Text()
	}
	return v.s.in.location(profile.Location{Realm: profile.RealmKernel, Mapping: k.mapping(v.s.in, ""), Offset: off})
}
