// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"fmt"
	"os"

	"diagon.dev/diagon/pkg/procmaps"
	"diagon.dev/diagon/pkg/symbol/elf"
)

const (
	vdsoName = "[vdso]"
	maxVDSO  = 1 << 20
)

// readVDSO reads the code that the kernel maps into every process, from this
// process's own memory. It is the same in all of them, but for 32-bit ones.
func readVDSO() (image []byte, err error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, fmt.Errorf("vdso: %w", err)
	}
	defer maps.Close()
	var at procmaps.Mapping
	if err := procmaps.Scan(maps, func(m procmaps.Mapping) bool {
		if m.Path == vdsoName {
			at = m
		}
		return at.End == 0
	}); err != nil {
		return nil, fmt.Errorf("vdso: %w", err)
	}
	if at.End == 0 || at.End-at.Start > maxVDSO {
		return nil, fmt.Errorf("vdso: not mapped")
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, fmt.Errorf("vdso: %w", err)
	}
	defer mem.Close()
	image = make([]byte, at.End-at.Start)
	if _, err := mem.ReadAt(image, int64(at.Start)); err != nil {
		return nil, fmt.Errorf("vdso: %w", err)
	}
	return image, nil
}

// loadVDSO makes an object of it.
func loadVDSO(image []byte, functions int) (*object, error) {
	r, size := bytes.NewReader(image), int64(len(image))
	f, err := elf.Read(r, size)
	if err != nil {
		return nil, fmt.Errorf("vdso: %w", err)
	}
	o := &object{elf: f, local: true, buildID: f.BuildID(r, size), id: fileID{size: size}}
	for _, which := range []elf.Which{elf.Symtab, elf.Dynsym} {
		o.add(f, r, size, which, functions, source{memory: image})
	}
	f.Sections = nil
	o.bytes += f.Bytes() + size
	return o, nil
}

// isVDSO reports whether a mapping holds the same image as this process's own.
func isVDSO(m *procmaps.Mapping, o *object) bool {
	return o != nil && m.Path == vdsoName && m.End-m.Start == uint64(o.id.size) && m.Start >= 1<<32
}
