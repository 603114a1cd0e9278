// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// dial prepares a connection; the first stream makes it. Each attempt gets a
// fresh one, so that gRPC's own backoff never adds to the session's, names are resolved
// anew and certificates are read anew.
func (s *Session) dial() (*grpc.ClientConn, *wiretap, error) {
	tap := &wiretap{sent: &s.counts.bytesSent}
	creds, err := s.keys.credentials(s.channel.TLS, func() { tap.asked.Store(true) })
	if err != nil {
		return nil, nil, err
	}
	// passthrough: net.Dialer resolves, and tries all of a name's addresses.
	conn, err := grpc.NewClient("passthrough:///"+s.channel.Address(),
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(tap.dial),
		grpc.WithUserAgent("diagon-agent"),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: grpcbackoff.DefaultConfig, MinConnectTimeout: s.cfg.ConnectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: s.cfg.KeepaliveTime, Timeout: s.cfg.KeepaliveTimeout}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallSendMsgSize(s.cfg.BatchBytes+sendSlack),
			grpc.MaxCallRecvMsgSize(maxOrderBytes),
		),
	)
	if err != nil {
		return nil, nil, err
	}
	return conn, tap, nil
}

const (
	sendSlack     = 1 << 10 // what a request adds to its batch; less than this in truth
	maxOrderBytes = 1 << 20 // the longest message down is an order with some thousand pids
)

// A wiretap counts what a connection carries up, and keeps the first bytes that
// came down: when no gRPC comes of it, they tell what answered instead.
type wiretap struct {
	sent  *atomic.Uint64
	asked atomic.Bool // the server was found trustworthy and wants a client certificate

	mu    sync.Mutex
	first []byte
	open  bool
}

func (t *wiretap) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.first, t.open = nil, true
	t.mu.Unlock()
	return &tapped{conn, t}, nil
}

type tapped struct {
	net.Conn
	tap *wiretap
}

func (c *tapped) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.tap.sent.Add(uint64(n))
	return n, err
}

const firstBytes = 16

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.tap.mu.Lock()
	if missing := firstBytes - len(c.tap.first); missing > 0 {
		c.tap.first = append(c.tap.first, p[:min(n, missing)]...)
	}
	c.tap.mu.Unlock()
	return n, err
}

// errWrongPeer means that something answers at the address, and it is not a server of ours.
var errWrongPeer = errors.New("wrong protocol")

// explain says of a connection that failed before a registration was answered what is
// at the other end, where that is known; else it returns err. established says that
// there was a stream, so that the other end speaks HTTP/2.
func (t *wiretap) explain(err error, encrypted, established bool) error {
	if status.Code(err) == codes.Unimplemented {
		return fmt.Errorf("%w: a gRPC or HTTP/2 server answers that knows no diagon.v1.Diagnostics: %w", errWrongPeer, err)
	}
	if established {
		return err
	}
	if t.asked.Load() {
		// TLS 1.3 lets a client send before its certificate is judged, so the server's
		// reason is often lost to the broken pipe.
		return fmt.Errorf("the server wants a client certificate and ended the connection: none is set, or it does not trust the one in cert_file: %w", err)
	}
	t.mu.Lock()
	first, open := t.first, t.open
	t.mu.Unlock()
	if len(first) == 0 && errors.Is(err, errSilent) {
		return err
	}
	if what := whatAnswered(first, open, encrypted); what != "" {
		return fmt.Errorf("%w: %s: %w", errWrongPeer, what, err)
	}
	return err
}

// whatAnswered recognises a protocol by the first bytes a server sent; "" when they
// are what was expected.
func whatAnswered(first []byte, open, encrypted bool) string {
	switch {
	case len(first) == 0 && open && !encrypted:
		return "the connection was closed without a word: the server may want TLS (tls=on)"
	case len(first) == 0:
		return ""
	case bytes.HasPrefix(first, []byte("HTTP/1.")):
		return "an HTTP/1 server answers: this is not the gRPC port"
	case isTLS(first) && !encrypted:
		return "a TLS server answers: say tls=on"
	case isTLS(first):
		return ""
	case isSettingsFrame(first) && encrypted:
		return "an HTTP/2 server without TLS answers: say tls=off, or give it a certificate"
	case isSettingsFrame(first):
		return ""
	}
	return fmt.Sprintf("what answers begins with %q", first)
}

// isTLS recognises a TLS record: handshake or alert, of major version 3 (RFC 8446 section 5.1).
func isTLS(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0x16 || b[0] == 0x15) && b[1] == 3
}

// isSettingsFrame recognises HTTP/2: a server's first frame is SETTINGS, type 4
// on stream 0 (RFC 9113 sections 3.4 and 4.1).
func isSettingsFrame(b []byte) bool {
	return len(b) >= 9 && b[3] == 4 && b[4]&^1 == 0 && bytes.Equal(b[5:9], []byte{0, 0, 0, 0})
}
