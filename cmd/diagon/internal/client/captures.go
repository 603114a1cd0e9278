// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// States of captures and of their targets that are told apart here.
const (
	Pending   = "PENDING"
	Running   = "RUNNING"
	Succeeded = "SUCCEEDED"
	Cancelled = "CANCELLED"
)

// A CaptureRequest asks nodes for a deep look.
type CaptureRequest struct {
	Kind     string         `json:"kind"`
	Targets  RequestTargets `json:"targets"`
	Duration string         `json:"duration"` // "10s"
	Hz       int            `json:"hz"`       // samples a second on each CPU; 0: as the node likes
}

// RequestTargets says who is to look.
type RequestTargets struct {
	Nodes []string `json:"nodes"`
	PIDs  []int    `json:"pids,omitempty"`
}

// A Capture is an order and how far it has come.
type Capture struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	State      string    `json:"state"`
	Message    string    `json:"message"`
	Created    time.Time `json:"created"`
	Start      time.Time `json:"start"`
	Deadline   time.Time `json:"deadline"`
	DurationMS int64     `json:"duration_ms"`
	Hz         int       `json:"hz"`
	Targets    []Target  `json:"targets"`
}

// Final reports whether the state changes no more.
func (c Capture) Final() bool { return c.State != Pending && c.State != Running }

// A Target is one node's part of a capture.
type Target struct {
	Node      string     `json:"node"`
	PIDs      []int      `json:"pids"`
	State     string     `json:"state"`
	Message   string     `json:"message"`
	Updated   time.Time  `json:"updated"`
	Artifacts []Artifact `json:"artifacts"`
}

// An Artifact is a file that came out of a capture.
type Artifact struct {
	Name        string `json:"name"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	ContentType string `json:"content_type"`
}

// Start asks for a capture and returns it as it begins.
func (c *Client) Start(ctx context.Context, r CaptureRequest) (Capture, error) {
	var got Capture
	return got, c.askJSON(ctx, http.MethodPost, "/captures", nil, r, &got)
}

// Capture asks how far a capture has come.
func (c *Client) Capture(ctx context.Context, id string) (Capture, error) {
	var got Capture
	return got, c.askJSON(ctx, http.MethodGet, "/captures/"+url.PathEscape(id), nil, nil, &got)
}

// Cancel ends a capture.
func (c *Client) Cancel(ctx context.Context, id string) (Capture, error) {
	var got Capture
	return got, c.askJSON(ctx, http.MethodDelete, "/captures/"+url.PathEscape(id), nil, nil, &got)
}

// Captures lists the newest ones first.
func (c *Client) Captures(ctx context.Context, limit int) ([]Capture, error) {
	var got struct {
		Captures []Capture `json:"captures"`
	}
	err := c.askJSON(ctx, http.MethodGet, "/captures", url.Values{"limit": {strconv.Itoa(limit)}}, nil, &got)
	return got.Captures, err
}

// Download writes an artifact to w. What does not have the size and the checksum that the
// server promised is an error.
func (c *Client) Download(ctx context.Context, id string, a Artifact, w io.Writer) error {
	resp, err := c.ask(ctx, downloadTime, http.MethodGet, "/captures/"+url.PathEscape(id)+"/artifacts/"+url.PathEscape(a.Name), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(resp.Body, a.Size+1))
	if err != nil {
		return fmt.Errorf("download %s: %w", a.Name, err)
	}
	if n != a.Size {
		return fmt.Errorf("download %s: it came with %d bytes or more, the server promised %d", a.Name, n, a.Size)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != a.SHA256 {
		return fmt.Errorf("download %s: its sha256 is %s, the server promised %s", a.Name, got, a.SHA256)
	}
	return nil
}
