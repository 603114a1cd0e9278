// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"
	"time"

	"diagon.dev/diagon/pkg/collector/host"
	"diagon.dev/diagon/pkg/collector/oncpu"
	"diagon.dev/diagon/pkg/uplink"
)

// Config is what an operator decides about the agent.
type Config struct {
	Node     string        // the node's name in every profile
	HTTP     string        // address of /metrics, /healthz and /readyz; "" for none
	Version  string        // of this program
	Window   time.Duration // length of a profile
	OnCPU    oncpu.Config
	Host     host.Config
	Ceilings Ceilings
	Uplink   uplink.Config // with an empty Channel nothing is sent
}

// DefaultConfig is the always-on profile at its ordinary cost.
func DefaultConfig() Config {
	return Config{
		HTTP:     "127.0.0.1:7172",
		Window:   10 * time.Second,
		OnCPU:    oncpu.DefaultConfig(),
		Host:     host.DefaultConfig(),
		Ceilings: DefaultCeilings(),
		Uplink:   uplink.DefaultConfig(),
	}
}

// Bounds of a window: shorter ones cost more on the wire, longer ones hold more in memory.
const (
	minWindow = time.Second
	maxWindow = 5 * time.Minute
)

// Validate names the first setting that is out of its bounds.
func (c Config) Validate() error {
	if c.Node == "" {
		return errors.New("node: the name is empty")
	}
	if c.HTTP != "" {
		if _, _, err := net.SplitHostPort(c.HTTP); err != nil {
			return fmt.Errorf("http: %w", err)
		}
	}
	if c.Window < minWindow || c.Window > maxWindow {
		return fmt.Errorf("window: %v is not between %v and %v", c.Window, minWindow, maxWindow)
	}
	if err := c.OnCPU.Validate(); err != nil {
		return err
	}
	if err := c.Host.Validate(); err != nil {
		return err
	}
	if err := c.Ceilings.Validate(); err != nil {
		return err
	}
	if c.Uplink.Channel == "" {
		return nil
	}
	return c.Uplink.Validate()
}
