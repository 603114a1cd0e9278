package doctor

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	for range 2 {
		s := time.Now()
		f := Examine(context.Background(), DefaultConfig())
		t.Log(time.Since(s))
		e := json.NewEncoder(os.Stdout)
		for _, x := range f {
			e.Encode(x)
		}
		t.Log(Summary(f))
		h := look(DefaultConfig())
		for i, probe := range []func(context.Context) Finding{
			h.onCPU, h.follow, h.perfEvents, h.ringBuffer, h.kernelTypes, h.policy, h.statistics,
			h.kernelSymbols, h.processFiles, h.deletedFiles, h.debugFiles,
			h.hostPIDs, h.userNamespace, h.cgroups,
			h.pressure, h.memoryLimit, h.disk,
			h.tracefs, h.helpers,
		} {
			s := time.Now()
			probe(context.Background())
			t.Log(i, time.Since(s))
		}
	}
}
