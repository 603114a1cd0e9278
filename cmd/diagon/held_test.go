// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestHeldCommand(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*held)
		ran  bool
		want int
	}{
		{name: "released, it runs and its status is its own", do: (*held).release, ran: true, want: 5},
		{name: "abandoned, it never begins", do: (*held).abandon, want: exitCannotExecute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			mark := filepath.Join(t.TempDir(), "ran")
			h, err := hold([]string{"sh", "-c", `: >"$0"; exit 5`, mark})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-h.done:
				t.Fatal("it ended before it was let go")
			case <-time.After(300 * time.Millisecond):
			}
			if _, err := os.Stat(mark); err == nil {
				t.Fatal("it ran before it was let go")
			}
			tt.do(h)
			select {
			case <-h.done:
			case <-time.After(20 * time.Second):
				t.Fatal("it does not end")
			}
			if _, err := os.Stat(mark); (err == nil) != tt.ran {
				t.Errorf("ran: %v, want %v", err == nil, tt.ran)
			}
			if got := h.status(); got != tt.want {
				t.Errorf("status %d, want %d", got, tt.want)
			}
		})
	}
}
