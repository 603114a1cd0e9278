// SPDX-License-Identifier: Apache-2.0

package oncpu

import (
	"testing"

	"diagon.dev/diagon/pkg/collector/collectortest"
)

// noLoss fails the test for everything that is dropped.
func noLoss(t *testing.T) func(place string, n uint64) {
	return func(place string, n uint64) { t.Errorf("lost %d at %s", n, place) }
}

func TestPromises(t *testing.T) {
	for name, cfg := range map[string]Config{
		"all":    DefaultConfig(),
		"chosen": {Hz: 99, Drain: DefaultConfig().Drain, PIDs: []int{1}},
	} {
		t.Run(name, func(t *testing.T) { collectortest.Promises(t, New(cfg, noLoss(t))) })
	}
}
