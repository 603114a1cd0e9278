// SPDX-License-Identifier: Apache-2.0

package periodic

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestRunCallsOnceAnIntervalUntilItsContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Second)
		defer cancel()
		calls := 0
		if err := Run(ctx, time.Minute, func(context.Context) { calls++ }); err != nil {
			t.Errorf("Run = %v", err)
		}
		if calls != 3 {
			t.Errorf("%d calls in three minutes, want 3", calls)
		}
	})
}
