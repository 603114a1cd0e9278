// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"diagon.dev/diagon/pkg/profile"
)

const (
	headerBytes  = int(unsafe.Offsetof(kernOncpuSample{}.Frames))
	addressBytes = 8
	buildIDBytes = 32 // struct bpf_stack_build_id of include/uapi/linux/bpf.h
)

// The kernel's verdict on one frame of a stack of build-ids: BPF_STACK_BUILD_ID_*.
const (
	buildIDValid = 1 // build-id and file offset
	buildIDIP    = 2 // no file, or the file was not in the page cache: the address alone
)

var errShort = errors.New("record shorter than its header")

// A decoder makes samples of records. What repeats between samples it makes once.
type decoder struct {
	wall      time.Duration // from boot time to wall time
	values    profile.Values
	comms     *lru.LRU[[16]byte, string]
	mappings  *lru.LRU[buildID, *profile.Mapping]
	locations *lru.LRU[place, *profile.Location]
}

type buildID [20]byte

// place is a frame of a process that cannot be seen from here.
type place struct {
	file   buildID
	offset uint64
}

func newDecoder(hz int) *decoder {
	d := &decoder{
		comms:     cache[[16]byte, string](1 << 10),
		mappings:  cache[buildID, *profile.Mapping](1 << 10),
		locations: cache[place, *profile.Location](1 << 14),
	}
	d.values[profile.Samples] = 1
	d.values[profile.CPU] = int64(time.Second) / int64(hz)
	return d
}

// decode reads one struct oncpu_sample, cut behind the frames it fills. The
// sample shares nothing with raw.
func (d *decoder) decode(raw []byte) (profile.Sample, error) {
	if len(raw) < headerBytes {
		return profile.Sample{}, errShort
	}
	var head kernOncpuSample
	at := func(offset uintptr) []byte { return raw[offset:] }
	boot := binary.NativeEndian.Uint64(at(unsafe.Offsetof(head.BootNs)))
	kernelBytes := int32(binary.NativeEndian.Uint32(at(unsafe.Offsetof(head.KernelBytes))))
	userBytes := int32(binary.NativeEndian.Uint32(at(unsafe.Offsetof(head.UserBytes))))
	form := kernOncpuUserForm(binary.NativeEndian.Uint32(at(unsafe.Offsetof(head.UserForm))))

	kernel, rest := take(raw[headerBytes:], kernelBytes)
	user, _ := take(rest, userBytes)
	var stack profile.Stack
	if form == kernOncpuUserFormUSER_BUILD_IDS {
		stack = make(profile.Stack, 0, len(kernel)/addressBytes+len(user)/buildIDBytes)
		stack = addresses(stack, profile.RealmKernel, kernel)
		stack = d.buildIDs(stack, user)
	} else {
		stack = make(profile.Stack, 0, len(kernel)/addressBytes+len(user)/addressBytes)
		stack = addresses(stack, profile.RealmKernel, kernel)
		stack = addresses(stack, profile.RealmUser, user)
	}

	return profile.Sample{
		Time:   time.Unix(0, int64(boot)).Add(d.wall),
		PID:    int(binary.NativeEndian.Uint32(at(unsafe.Offsetof(head.Pid)))),
		TID:    int(binary.NativeEndian.Uint32(at(unsafe.Offsetof(head.Tid)))),
		Thread: d.comm([16]byte(at(unsafe.Offsetof(head.Comm)))),
		Stack:  stack,
		Values: d.values,
	}, nil
}

// take splits size bytes off body. A negative size is an errno: it took nothing.
func take(body []byte, size int32) (taken, rest []byte) {
	n := min(max(0, int(size)), len(body))
	return body[:n], body[n:]
}

// addresses appends frames of eight bytes each, up to the first that is none.
func addresses(stack profile.Stack, realm profile.Realm, body []byte) profile.Stack {
	for ; len(body) >= addressBytes; body = body[addressBytes:] {
		address := binary.NativeEndian.Uint64(body)
		if realm == profile.RealmUser && !isUserAddress(address) {
			break
		}
		stack = append(stack, profile.Frame{Realm: realm, Address: address})
	}
	return stack
}

// isUserAddress reports whether code of a process can lie there: not in the
// first page, not above 2^56, the most that any machine maps for a process. A
// walk by frame pointers that comes to code without them goes on with whatever
// the register held; what does not even look like code is cut off here.
func isUserAddress(address uint64) bool { return address >= 1<<12 && address < 1<<56 }

// buildIDs appends frames that the kernel already resolved to file and offset,
// up to the first that is none.
func (d *decoder) buildIDs(stack profile.Stack, body []byte) profile.Stack {
	for ; len(body) >= buildIDBytes; body = body[buildIDBytes:] {
		status := binary.NativeEndian.Uint32(body)
		at := place{buildID(body[4:24]), binary.NativeEndian.Uint64(body[24:])}
		switch status {
		case buildIDValid:
			stack = append(stack, profile.Frame{Realm: profile.RealmUser, Location: d.location(at)})
		case buildIDIP:
			if !isUserAddress(at.offset) {
				return stack
			}
			stack = append(stack, profile.Frame{Realm: profile.RealmUser, Address: at.offset})
		}
	}
	return stack
}

func (d *decoder) location(at place) *profile.Location {
	return made(d.locations, at, func() *profile.Location {
		return &profile.Location{Realm: profile.RealmUser, Mapping: d.mapping(at.file), Offset: at.offset}
	})
}

// mapping has no path: the kernel names the file by its build-id alone.
func (d *decoder) mapping(id buildID) *profile.Mapping {
	return made(d.mappings, id, func() *profile.Mapping {
		return &profile.Mapping{BuildID: hex.EncodeToString(id.trimmed())}
	})
}

func (d *decoder) comm(raw [16]byte) string {
	return made(d.comms, raw, func() string {
		name, _, _ := bytes.Cut(raw[:], []byte{0})
		return string(bytes.ToValidUTF8(name, []byte("?")))
	})
}

// trimmed takes off the zeroes that the kernel fills short build-ids up with:
// linkers write 8 (xxhash), 16 (md5, uuid) or 20 bytes (sha1).
func (id buildID) trimmed() []byte {
	for _, size := range []int{8, 16} {
		if bytes.Count(id[size:], []byte{0}) == len(id)-size {
			return id[:size]
		}
	}
	return id[:]
}

func cache[K comparable, V any](size int) *lru.LRU[K, V] {
	c, err := lru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // only a size below one
	}
	return c
}

// made answers from c, and makes what is not there.
func made[K comparable, V any](c *lru.LRU[K, V], key K, make func() V) V {
	if v, ok := c.Get(key); ok {
		return v
	}
	v := make()
	c.Add(key, v)
	return v
}
