// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// threeDays fills a store with a batch of many stacks on each of three days.
func (s suite) threeDays(t *testing.T) store.Store {
	t.Helper()
	st := s.fresh(t)
	for day := range 3 {
		b := batch("a", uint64(day+1), noon.AddDate(0, 0, day))
		for i := range 5000 {
			b.Records = append(b.Records, record("x", 1, fmt.Sprintf("leaf-%d-%d", day, i), fmt.Sprintf("day%d", day)))
		}
		mustAppend(t, st, b)
	}
	return st
}

func (s suite) retainAge(t *testing.T) {
	st := s.threeDays(t)
	before, err := st.Retain(t.Context(), store.Retention{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	after, err := st.Retain(t.Context(), store.Retention{Age: 36 * time.Hour}, noon.AddDate(0, 0, 2).Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if after >= before {
		t.Errorf("the store took %d bytes before and %d after", before, after)
	}
	everything := store.Selection{From: noon.AddDate(0, 0, -1), To: noon.AddDate(0, 0, 9)}
	if n := len(ask(t, st, profile.CPU, everything).Stacks); n != 10_000 {
		t.Errorf("%d stacks are left, want those of the last two days", n)
	}
	oldest := store.Selection{From: noon, To: noon.Add(time.Hour)}
	wantStacks(t, st, oldest, "")
	mustAppend(t, st, batch("b", 1, noon, record("x", 3, "late")))
	wantStacks(t, st, oldest, "late 3")
}

func (s suite) retainBytes(t *testing.T) {
	st := s.threeDays(t)
	before, err := st.Retain(t.Context(), store.Retention{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	after, err := st.Retain(t.Context(), store.Retention{Bytes: before - 1}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if after >= before {
		t.Errorf("the store took %d bytes before and %d after", before, after)
	}
	oldest := store.Selection{From: noon, To: noon.Add(time.Hour)}
	wantStacks(t, st, oldest, "")
	newest := store.Selection{From: noon.AddDate(0, 0, 2), To: noon.AddDate(0, 0, 3)}
	if n := len(ask(t, st, profile.CPU, newest).Stacks); n != 5000 {
		t.Errorf("%d stacks of the newest day are left, want all", n)
	}
}

func (s suite) concurrent(t *testing.T) {
	const nodes, each = 4, 15
	st := s.fresh(t)
	var all sync.WaitGroup
	for n := range nodes {
		all.Go(func() {
			for i := range each {
				start := noon.Add(time.Duration(i) * 7 * time.Minute) // over several hours
				err := st.Append(t.Context(), batch(fmt.Sprint("node", n), uint64(i+1), start, record("x", 1, "leaf", "main"), record("x", 1, fmt.Sprint("leaf", i))))
				if err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range each {
				if _, err := st.Stacks(t.Context(), profile.CPU, always, plenty); err != nil {
					t.Errorf("stacks: %v", err)
				}
				if _, err := st.Rates(t.Context(), profile.CPU, always, time.Minute); err != nil {
					t.Errorf("rates: %v", err)
				}
			}
		})
	}
	all.Go(func() {
		for range each {
			if _, err := st.Retain(t.Context(), store.Retention{Age: 240 * time.Hour}, noon); err != nil && !errors.Is(err, t.Context().Err()) {
				t.Errorf("retain: %v", err)
			}
		}
	})
	all.Wait()
	var total int64
	for _, w := range ask(t, st, profile.CPU, always).Stacks {
		total += w.Value
	}
	if total != 2*nodes*each {
		t.Errorf("the stacks add up to %d, want %d", total, 2*nodes*each)
	}
}
