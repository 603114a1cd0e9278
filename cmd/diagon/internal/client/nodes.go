// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// A Node is a machine whose agent the server knows.
type Node struct {
	Name          string            `json:"name"`
	BootID        string            `json:"boot_id"`
	AgentVersion  string            `json:"agent_version"`
	Connected     bool              `json:"connected"`
	Server        string            `json:"server"`
	FirstSeen     time.Time         `json:"first_seen"`
	LastHeartbeat time.Time         `json:"last_heartbeat"`
	Capabilities  []Capability      `json:"capabilities"`
	Devices       []Device          `json:"devices"`
	Host          map[string]string `json:"host"`
	Health        Health            `json:"health"`
	Losses        []Loss            `json:"losses"`
}

// A Capability is something a node can do, or the reason why not.
type Capability struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason"`
}

// A Device is an accelerator.
type Device struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Model string `json:"model"`
}

// Health is how an agent feels.
type Health struct {
	Status  string `json:"status"` // "ok", "degraded", "unknown"
	Message string `json:"message"`
}

// A Loss is what was dropped at a place.
type Loss struct {
	Node  string `json:"node,omitempty"`
	Place string `json:"place"`
	Count uint64 `json:"count"`
}

// Nodes lists every node that the server has seen, and the answer as it came.
func (c *Client) Nodes(ctx context.Context) ([]Node, json.RawMessage, error) {
	var raw json.RawMessage
	if err := c.askJSON(ctx, http.MethodGet, "/nodes", nil, nil, &raw); err != nil {
		return nil, nil, err
	}
	var answer struct {
		Nodes []Node `json:"nodes"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, nil, err
	}
	return answer.Nodes, raw, nil
}
