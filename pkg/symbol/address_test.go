// SPDX-License-Identifier: Apache-2.0

package symbol

import "unsafe"

// addressOf is where memory lies.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
