// SPDX-License-Identifier: Apache-2.0

// Package client speaks the HTTP API of a diagon-server, which docs/http-api.md describes.
//
// Every call has a deadline and a bound on what it takes in. An error of the server
// comes through in the server's own words.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultServer is where a diagon-server listens unless it is told otherwise.
const DefaultServer = "http://127.0.0.1:7170"

// Bounds of a call. Downloads go by the artifact's own size instead.
const (
	askTime      = 30 * time.Second // for an answer to begin, and for a small one to end
	downloadTime = 15 * time.Minute // for a large one to end
	maxJSON      = 256 << 20
	maxErrorText = 64 << 10
)

// A Client asks one server. Its methods may be called from several goroutines.
type Client struct {
	server string
	http   *http.Client
}

// New makes a client of the server at an address such as DefaultServer. A missing scheme
// means http.
func New(server string) (*Client, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("server %q is no address such as %s", server, DefaultServer)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	transport.ResponseHeaderTimeout = askTime
	return &Client{server: strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/"), http: &http.Client{Transport: transport}}, nil
}

// Server is the address as it is asked.
func (c *Client) Server() string { return c.server }

// A StatusError is a refusal in the server's words.
type StatusError struct {
	Status int
	Text   string
}

func (e *StatusError) Error() string { return e.Text }

// ErrUnreachable means that no diagon server answered; the wrapping error says who did, or who did not.
var ErrUnreachable = errors.New("no diagon server")

// ask sends a request and returns the body of a good answer. The caller closes it, which
// also ends the deadline.
func (c *Client) ask(ctx context.Context, within time.Duration, method, path string, query url.Values, body any) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			cancel()
			return nil, err
		}
		sent = bytes.NewReader(raw)
	}
	address := c.server + "/api/v1" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, sent)
	if err != nil {
		cancel()
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		cancel()
		return nil, c.unreachable(err)
	}
	resp.Body = &endsDeadline{resp.Body, cancel}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, c.refusal(resp)
	}
	return resp, nil
}

// unreachable words a failure below HTTP.
func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if strings.Contains(err.Error(), "malformed HTTP") { // net/http has no error value for it, and quotes the bytes
		return fmt.Errorf("%w: what listens at %s does not speak HTTP/1; the API has a port of its own, 7170 unless chosen otherwise, beside that of the agents", ErrUnreachable, c.server)
	}
	return fmt.Errorf("%w answers at %s: %w; start one with `diagon-server`, or name it with --server", ErrUnreachable, c.server, err)
}

// refusal reads {"error": "…"}. Whoever answers otherwise is no diagon server.
func (c *Client) refusal(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(raw, &answer) != nil || answer.Error == "" {
		return c.stranger(resp)
	}
	return &StatusError{Status: resp.StatusCode, Text: answer.Error}
}

func (c *Client) stranger(resp *http.Response) error {
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = "no content type"
	}
	return fmt.Errorf("%w: %s answers %s with %s; name the server with --server", ErrUnreachable, c.server, resp.Status, kind)
}

// askJSON decodes a good answer into to.
func (c *Client) askJSON(ctx context.Context, method, path string, query url.Values, body, to any) error {
	resp, err := c.ask(ctx, askTime, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" {
		return c.stranger(resp)
	}
	return decode(resp.Body, to)
}

// decode takes one JSON value within the bound.
func decode(r io.Reader, to any) error {
	limited := &io.LimitedReader{R: r, N: maxJSON}
	if err := json.NewDecoder(limited).Decode(to); err != nil {
		if limited.N <= 0 {
			return fmt.Errorf("the server's answer is larger than %d MiB; ask for less", maxJSON>>20)
		}
		return fmt.Errorf("the server's answer: %w", err)
	}
	return nil
}

type endsDeadline struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (e *endsDeadline) Close() error {
	defer e.cancel()
	return e.ReadCloser.Close()
}
