// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func TestTheWrongProtocolOnAPort(t *testing.T) {
	s := start(t, testConfig(t))
	http1 := s.httpLn.Addr().String()

	t.Run("gRPC on the page's", func(t *testing.T) {
		if _, _, err := push(t, dial(t, http1, insecure.NewCredentials()), batch(t, "n", 1, 1)); status.Code(err) != codes.Unavailable {
			t.Errorf("push = %v", err)
		}
	})
	t.Run("TLS on the page's", func(t *testing.T) {
		d := &net.Dialer{Timeout: 5 * time.Second}
		if c, err := tls.DialWithDialer(d, "tcp", http1, &tls.Config{InsecureSkipVerify: true}); err == nil {
			c.Close()
			t.Error("a handshake succeeded")
		}
	})
	t.Run("HTTP on the agents'", func(t *testing.T) {
		resp, err := client(t).Get("http://" + s.GRPCAddr() + "/")
		if err == nil {
			resp.Body.Close()
			t.Errorf("answered %s", resp.Status)
		}
	})
	for name, addr := range map[string]string{"noise on the page's": http1, "noise on the agents'": s.GRPCAddr()} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(15 * time.Second))
			_, _ = c.Write([]byte(strings.Repeat("\x00\xff\x13noise\r\n", 100)))
			if n, err := io.Copy(io.Discard, c); err != nil && n == 0 && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection hangs: %v", err)
			}
		})
	}
	t.Run("headers of a megabyte", func(t *testing.T) {
		c, err := net.Dial("tcp", http1)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(15 * time.Second))
		go func() {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("a", 1<<20)+"\r\n\r\n")
		}()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return // cut off in the middle of sending: as good
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("answered %s", resp.Status)
		}
	})
	// After all that, it still works.
	if durable, _, err := push(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), batch(t, "n", 1, 1)); err != nil || durable != 1 {
		t.Errorf("push = %d, %v", durable, err)
	}
}

func TestOtherSitesChangeAndReadNothing(t *testing.T) {
	s := start(t, testConfig(t))
	for _, tt := range []struct {
		name, method, path string
		header             map[string]string
		want               int
	}{
		{"a form of another site", "POST", "/api/v1/captures", map[string]string{"Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"}, 403},
		{"another origin", "DELETE", "/api/v1/captures/x", map[string]string{"Origin": "https://evil.example"}, 403},
		{"a body that is not JSON", "POST", "/api/v1/captures", map[string]string{"Content-Type": "text/plain"}, 415},
		{"a name that was made to point here", "GET", "/api/v1/nodes", map[string]string{"Host": "evil.example"}, 403},
		{"the own page", "GET", "/api/v1/nodes", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"localhost", "GET", "/api/v1/nodes", map[string]string{"Host": "localhost:7170"}, 200},
		{"a call that is none", "GET", "/api/v2/nodes", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, s.URL()+tt.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range tt.header {
				req.Header.Set(k, v)
			}
			req.Host = tt.header["Host"]
			resp, err := client(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("%d, want %d", resp.StatusCode, tt.want)
			}
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("lets origin %q read", got)
			}
		})
	}
}

func TestASecondServerIsToldWhatToDo(t *testing.T) {
	s := start(t, testConfig(t))
	for _, tt := range []struct {
		name string
		set  func(*Config)
		want string
	}{
		{"the page's port is taken", func(c *Config) { c.HTTP = s.httpLn.Addr().String() }, "--http"},
		{"the agents' port is taken", func(c *Config) { c.GRPC = s.GRPCAddr() }, "--grpc"},
		{"the folder is in use", func(c *Config) { c.Data = s.cfg.Data }, "--data"},
		{"an address that is none", func(c *Config) { c.HTTP = "nowhere" }, "http: "},
		{"TLS without a key", func(c *Config) { c.Ingest.TLS.Cert = "x" }, "tls-key"},
		{"a certificate that is not there", func(c *Config) { c.Ingest.TLS.Cert, c.Ingest.TLS.Key = "/nothing", "/nothing" }, "tls-cert"},
		{"a bucket of an unknown kind", func(c *Config) { c.Artifacts.URL = "ftp://host" }, "artifact-url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(t)
			tt.set(&cfg)
			other, err := Start(t.Context(), cfg, testLog(t))
			if err == nil {
				other.Stop()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want it to name %s", err, tt.want)
			}
		})
	}
}
