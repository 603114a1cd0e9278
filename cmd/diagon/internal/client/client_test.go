// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
)

func TestNew(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{name: "a whole address", in: "https://diagon.example:443/behind/proxy/", want: "https://diagon.example:443/behind/proxy"},
		{name: "http is understood", in: "host:7170", want: "http://host:7170"},
		{name: "another scheme", in: "ftp://host"},
		{name: "nothing"},
		{name: "no host", in: "http://"},
		{name: "no port number", in: "host:port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(tt.in)
			if (err == nil) != (tt.want != "") {
				t.Fatalf("err = %v, want an address %q", err, tt.want)
			}
			if err == nil && c.Server() != tt.want {
				t.Errorf("got %s, want %s", c.Server(), tt.want)
			}
		})
	}
}

// open makes a client of a server that answers every call alike.
func open(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   string // part of the error
		is     error
	}{
		{name: "the server's words come through", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"error": "another capture is running"}`)
		}, want: "another capture is running"},
		{name: "an error without words is no diagon server's", answer: http.NotFound, want: "404 Not Found with text/plain", is: ErrUnreachable},
		{name: "an answer that is no JSON is no diagon server's", answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, want: "200 OK with text/plain", is: ErrUnreachable},
		{name: "JSON that is cut short", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id": "c1", `)
		}, want: "the server's answer: unexpected EOF"},
		{name: "a connection that breaks", answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: "EOF", is: ErrUnreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := open(t, tt.answer).Capture(t.Context(), "c1")
			if err == nil || !strings.Contains(err.Error(), tt.want) || (tt.is != nil && !errors.Is(err, tt.is)) {
				t.Errorf("err = %v, want one saying %q", err, tt.want)
			}
		})
	}
}

func TestCancelledIsSaid(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := open(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, err := c.Capture(ctx, "c1"); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}

func TestIDsStayOneSegment(t *testing.T) {
	var asked string
	c := open(t, func(w http.ResponseWriter, r *http.Request) { asked = r.URL.EscapedPath(); http.NotFound(w, r) })
	c.Capture(t.Context(), "../nodes?x=1")
	if want := "/api/v1/captures/..%2Fnodes%3Fx=1"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
}

func TestDownload(t *testing.T) {
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // sha256 of "abc"
	for _, tt := range []struct {
		name string
		body string
		size int64
		sum  string
		err  string
	}{
		{name: "whole", body: "abc", size: 3, sum: sum},
		{name: "short", body: "ab", size: 3, sum: sum, err: "promised 3"},
		{name: "endless", body: strings.Repeat("a", 1<<20), size: 3, sum: sum, err: "promised 3"},
		{name: "changed", body: "abd", size: 3, sum: sum, err: "sha256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tt.body) })
			var got bytes.Buffer
			err := c.Download(t.Context(), "c1", Artifact{Name: "n1.cpu.pb.gz", Size: tt.size, SHA256: tt.sum}, &got)
			if tt.err == "" && (err != nil || got.String() != tt.body) {
				t.Fatalf("%q, %v", got.String(), err)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("err = %v, want one saying %q", err, tt.err)
			}
			if int64(got.Len()) > tt.size+1 {
				t.Errorf("took %d bytes of %d", got.Len(), tt.size)
			}
		})
	}
}

// TestAgentsPort asks a port of gRPC, as the agents' is, which answers in frames of HTTP/2.
func TestAgentsPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	agents := grpc.NewServer()
	served := make(chan error, 1)
	go func() { served <- agents.Serve(l) }()
	defer func() { agents.Stop(); <-served }()
	c, err := New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Nodes(t.Context())
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "does not speak HTTP/1") || strings.Contains(err.Error(), `\x`) {
		t.Errorf("err = %v", err)
	}
}
