// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net"
	"time"

	"diagon.dev/diagon/pkg/server/artifacts"
	"diagon.dev/diagon/pkg/server/bus"
	"diagon.dev/diagon/pkg/server/captures"
	"diagon.dev/diagon/pkg/server/ingest"
	"diagon.dev/diagon/pkg/server/query"
	"diagon.dev/diagon/pkg/server/registry"
	"diagon.dev/diagon/pkg/server/store"
	"diagon.dev/diagon/pkg/server/store/duckdb"
	"diagon.dev/diagon/pkg/server/web"
)

// Config is what an operator decides about a server. What several parts must agree
// on stands here once, and Start hands it to them: the name, the folder,
// the heartbeat, the age.
type Config struct {
	HTTP string // host:port of the page and the API
	GRPC string // host:port that agents dial
	Data string // folder for everything that must survive
	Name string // of this server in the fleet; "" is made of the host's name and the gRPC port

	Retention store.Retention
	Spare     int64 // bytes of the disk that are left free: below that no profiles are taken
	Settings  registry.Settings

	Bus       bus.Config
	Registry  registry.Config
	Captures  captures.Config
	Artifacts artifacts.Config
	Ingest    ingest.Config
	Store     duckdb.Config
	Query     query.Config
	Web       web.Config
}

// DefaultConfig serves this machine alone, and keeps a week and at most 20 GiB of profiles.
func DefaultConfig() Config {
	return Config{
		HTTP: "127.0.0.1:7170", GRPC: "127.0.0.1:7171", Data: "./diagon-data",
		Retention: store.Retention{Age: 7 * 24 * time.Hour, Bytes: 20 << 30},
		Spare:     256 << 20,
		Bus:       bus.DefaultConfig(),
		Registry:  registry.DefaultConfig(),
		Captures:  captures.DefaultConfig(),
		Artifacts: artifacts.DefaultConfig(),
		Ingest:    ingest.DefaultConfig(),
		Store:     duckdb.DefaultConfig(""),
		Query:     query.DefaultConfig(),
		Web:       web.DefaultConfig(),
	}
}

// Validate names the setting that is wrong.
func (c Config) Validate() error {
	for flag, addr := range map[string]string{"http": c.HTTP, "grpc": c.GRPC} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	switch {
	case c.Data == "":
		return errors.New("data: is empty")
	case c.Retention.Age < 0 || (c.Retention.Age > 0 && c.Retention.Age < time.Hour):
		return fmt.Errorf("retention-age: %v is less than 1h (0 keeps all)", c.Retention.Age)
	case c.Retention.Bytes < 0 || (c.Retention.Bytes > 0 && c.Retention.Bytes < 64<<20):
		return fmt.Errorf("retention-bytes: %d is less than 64 MiB (0 has no bound)", c.Retention.Bytes)
	case c.Spare < 0:
		return fmt.Errorf("disk-spare: %d is negative", c.Spare)
	case c.Settings.CPUHz > 997:
		return fmt.Errorf("agent-hz: %d is more than 997", c.Settings.CPUHz)
	case c.Settings.WindowMS > 600_000:
		return fmt.Errorf("agent-window: %v is more than 10m", time.Duration(c.Settings.WindowMS)*time.Millisecond)
	}
	for _, part := range []interface{ Validate() error }{c.Bus, c.Registry, c.Captures, c.Artifacts, c.Ingest, c.Store, c.Query, c.Web} {
		if err := part.Validate(); err != nil {
			return err
		}
	}
	return nil
}
