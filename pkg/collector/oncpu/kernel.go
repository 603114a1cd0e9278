// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"runtime"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"diagon.dev/diagon/pkg/collector"
)

// kernel is the loaded half of the collector. The knobs are not in it: the
// library would map their memory, and let go of it only when the garbage
// collector comes by.
type kernel struct {
	objects
	lostBefore [kernLostPlaceLOST_PLACES]uint64
}

type objects struct {
	kernPrograms
	kernMaps
}

func (o *objects) Close() error { return errors.Join(o.kernPrograms.Close(), o.kernMaps.Close()) }

// load puts programs and maps into the kernel; nothing fires yet.
func load(cfg Config, ringBytes uint32) (*kernel, error) {
	spec, err := loadKern()
	if err != nil {
		return nil, err
	}
	namespace, err := procPIDNamespace()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		spec.Variables[kernVarPidNamespace].Set(namespace),
		spec.Variables[kernVarWantIdle].Set(cfg.Idle),
		spec.Variables[kernVarWantChosen].Set(len(cfg.PIDs) > 0),
	)
	if err != nil {
		return nil, err
	}
	spec.Maps[kernMapSamples].MaxEntries = ringBytes
	if len(cfg.PIDs) == 0 {
		spec.Maps[kernMapChosen].MaxEntries = 1
	}

	k := new(kernel)
	if err := spec.LoadAndAssign(&k.objects, nil); err != nil {
		return nil, err
	}
	return k, nil
}

// attach chooses the processes and makes the program fire on every online CPU.
func (k *kernel) attach(cfg Config) (*events, error) {
	for _, pid := range cfg.PIDs {
		if err := k.Chosen.Put(uint32(pid), uint8(1)); err != nil {
			return nil, fmt.Errorf("choose process %d: %w", pid, err)
		}
	}

	e := &events{program: k.Oncpu, hz: cfg.Hz}
	if len(cfg.PIDs) > 0 {
		fork, err := link.AttachTracing(link.TracingOptions{Program: k.Follow})
		if err != nil {
			return nil, fmt.Errorf("follow forks: %w", err)
		}
		e.fork = fork
	}
	if err := e.matchOnline(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// reportLost tells lost what the kernel dropped since the last call.
func (k *kernel) reportLost(lost collector.Lost) error {
	for place, name := range map[kernLostPlace]string{
		kernLostPlaceLOST_RING:   LostRing,
		kernLostPlaceLOST_FOLLOW: LostFollow,
	} {
		var perCPU []uint64
		if err := k.Lost.Lookup(place, &perCPU); err != nil {
			return err
		}
		var sum uint64
		for _, n := range perCPU {
			sum += n
		}
		if n := sum - k.lostBefore[place]; n > 0 {
			lost(name, n)
		}
		k.lostBefore[place] = sum
	}
	return nil
}

// ringBytes gives the ring room for what all CPUs report between two drains,
// a kilobyte each: several times the usual stack, half of the deepest one.
func ringBytes(cfg Config) uint32 {
	const smallest, largest = 256 << 10, 16 << 20
	want := float64(runtime.NumCPU()*cfg.Hz) * cfg.Drain.Seconds() * 1024
	want = min(max(want, smallest), largest)
	return 1 << bits.Len32(uint32(want)-1)
}

// unavailable turns "this host cannot" into the sentinel and leaves other errors alone.
// The verifier's refusal is EACCES too, but it is our fault and not the host's.
func unavailable(err error) error {
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: needs CAP_BPF and CAP_PERFMON: %w", collector.ErrUnavailable, withoutGuess{err})
	}
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: %w", collector.ErrUnavailable, err)
	}
	return err
}

// withoutGuess is an error of the BPF library without its guess at a memory limit, which
// kernels since 5.11 do not have.
type withoutGuess struct{ error }

func (e withoutGuess) Error() string {
	return strings.ReplaceAll(e.error.Error(), " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "")
}

func (e withoutGuess) Unwrap() error { return e.error }
