// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{name: "names stay as they are", in: "std::map<int, ü>::operator[]", want: "std::map<int, ü>::operator[]"},
		{name: "an escape sequence becomes visible", in: "a\x1b[2Jb", want: "a\uFFFD[2Jb"},
		{name: "so do line ends and eight-bit controls", in: "a\nb\u009bc", want: "a\uFFFDb\uFFFDc"},
		{name: "bytes that are no text do", in: "a\xffb", want: "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Printable(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
