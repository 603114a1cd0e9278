// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"diagon.dev/diagon/pkg/collector"
)

func TestWatchSeesThisProcess(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	burnt := make(chan struct{})
	go func() {
		defer close(burnt)
		for ctx.Err() == nil {
		}
	}()

	cfg := Config{Hz: 99, Interval: 300 * time.Millisecond, PIDs: []int{os.Getpid()}}
	var tables []Table
	err := Watch(ctx, cfg, slog.New(slog.DiscardHandler), func(table Table) {
		if tables = append(tables, table); len(tables) == 3 {
			cancel()
		}
	})
	cancel()
	<-burnt
	if errors.Is(err, collector.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) != 3 {
		t.Fatalf("%d tables came, want 3", len(tables))
	}
	for _, table := range tables {
		if table.Length < cfg.Interval/2 || table.Length > 20*cfg.Interval {
			t.Errorf("a table of %v, want about %v", table.Length, cfg.Interval)
		}
		for _, p := range table.Processes {
			if p.PID != os.Getpid() {
				t.Errorf("process %d was not asked for", p.PID)
			}
		}
	}
	if last := tables[2]; last.Samples == 0 || last.CPU == 0 || len(last.Functions) == 0 {
		t.Errorf("nothing seen of a busy process: %+v", last)
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		ok   bool
	}{
		{name: "the default", cfg: DefaultConfig(), ok: true},
		{name: "no rate", cfg: Config{Interval: time.Second}},
		{name: "too fast", cfg: Config{Hz: 1000, Interval: time.Second}},
		{name: "no interval", cfg: Config{Hz: 99}},
		{name: "too long", cfg: Config{Hz: 99, Interval: time.Hour}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.cfg.Validate(); (err == nil) != tt.ok {
				t.Errorf("err = %v, want ok %v", err, tt.ok)
			}
		})
	}
}
