// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxPretty is the power of two of characters that a demangled name may have. A longer
// one loses its template arguments.
const maxPretty = 9

// pretty writes a symbol as a person writes it: C++ and Rust demangled, without
// parameters, with template arguments as long as they stay readable, because
// they tell a kernel for float from one for half. Other names are returned as they are.
func pretty(name string) string {
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") && !strings.HasPrefix(name, "__Z") {
		return name
	}
	full, err := demangle.ToString(name, demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(maxPretty+1))
	if err == nil && len(full) < 1<<maxPretty {
		return full
	}
	short, err := demangle.ToString(name, demangle.NoParams, demangle.NoEnclosingParams, demangle.NoTemplateParams, demangle.MaxLength(maxPretty+1))
	if err == nil {
		return short
	}
	return name
}
