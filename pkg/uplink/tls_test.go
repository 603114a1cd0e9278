// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"diagon.dev/diagon/pkg/uplink/uplinktest"
)

// authority is a certificate authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{cert: cert, key: key, file: filepath.Join(t.TempDir(), "ca.pem")}
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate of that name, good for 127.0.0.1, and its key.
func (a *authority) issue(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", raw)
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// peers notes the names that clients proved.
type peers struct {
	mu    sync.Mutex
	names []string
}

func (p *peers) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.names)
}

// secured makes a server's TLS option; clients must prove themselves to by unless it is nil.
func (a *authority) secured(t *testing.T, clients *authority, seen *peers) grpc.ServerOption {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.issue(t, "server.test", cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		cfg.ClientCAs.AddCert(clients.cert)
		cfg.VerifyConnection = func(c tls.ConnectionState) error {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.names = append(seen.names, c.PeerCertificates[0].Subject.CommonName)
			return nil
		}
	}
	return grpc.Creds(credentials.NewTLS(cfg))
}

func TestEncryption(t *testing.T) {
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca.issue(t, "n1", cert, key)
	otherCert, otherKey := filepath.Join(dir, "other-cert.pem"), filepath.Join(dir, "other-key.pem")
	other.issue(t, "n1", otherCert, otherKey)

	for _, tt := range []struct {
		name   string
		server []grpc.ServerOption
		client func(*Config)
		err    string // "" connects
		wrong  bool   // the error says that the protocol is the wrong one
	}{
		{name: "plain to plain", client: func(c *Config) {}},
		{name: "TLS with the right authority", server: []grpc.ServerOption{ca.secured(t, nil, nil)},
			client: func(c *Config) { c.TLS, c.CAFile = TLSOn, ca.file }},
		{name: "TLS with the certificate's own name", server: []grpc.ServerOption{ca.secured(t, nil, nil)},
			client: func(c *Config) { c.TLS, c.CAFile, c.ServerName = TLSOn, ca.file, "server.test" }},
		{name: "mutual TLS", server: []grpc.ServerOption{ca.secured(t, ca, new(peers))},
			client: func(c *Config) { c.TLS, c.CAFile, c.CertFile, c.KeyFile = TLSOn, ca.file, cert, key }},
		{name: "a wrong authority", server: []grpc.ServerOption{ca.secured(t, nil, nil)},
			client: func(c *Config) { c.TLS, c.CAFile = TLSOn, other.file }, err: "unknown authority"},
		{name: "a wrong name", server: []grpc.ServerOption{ca.secured(t, nil, nil)},
			client: func(c *Config) { c.TLS, c.CAFile, c.ServerName = TLSOn, ca.file, "elsewhere.test" }, err: "not elsewhere.test"},
		{name: "mutual TLS without a certificate", server: []grpc.ServerOption{ca.secured(t, ca, new(peers))},
			client: func(c *Config) { c.TLS, c.CAFile = TLSOn, ca.file }, err: "the server wants a client certificate"},
		{name: "mutual TLS with a certificate of another authority", server: []grpc.ServerOption{ca.secured(t, ca, new(peers))},
			client: func(c *Config) { c.TLS, c.CAFile, c.CertFile, c.KeyFile = TLSOn, ca.file, otherCert, otherKey }, err: "the server wants a client certificate"},
		{name: "TLS to a plain server",
			client: func(c *Config) { c.TLS, c.CAFile = TLSOn, ca.file }, err: "an HTTP/2 server without TLS answers: say tls=off", wrong: true},
		{name: "plain to a TLS server", server: []grpc.ServerOption{ca.secured(t, nil, nil)},
			client: func(c *Config) {}, err: "tls=on", wrong: true},
		{name: "a file that is not there",
			client: func(c *Config) { c.TLS, c.CAFile = TLSOn, "/nowhere/ca.pem" }, err: "ca file: open /nowhere/ca.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := uplinktest.NewState()
			server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{}, tt.server...)
			cfg := quick(t, server.Address)
			tt.client(&cfg)
			a := start(t, cfg)
			if tt.err == "" {
				push(t, a, 0, 3)
				flush(t, a)
				wantAll(t, state, 3)
				return
			}
			wantError(t, a, tt.err, tt.wrong)
		})
	}
}

func wantError(t *testing.T, a *agent, want string, wrong bool) {
	t.Helper()
	var last error
	eventually(t, "the connection fails", func() bool { last = a.Stats().LastError; return last != nil })
	if !strings.Contains(last.Error(), want) {
		t.Errorf("error\n %v\nwant one saying %q", last, want)
	}
	if errors.Is(last, errWrongPeer) != wrong {
		t.Errorf("error %v: wrong protocol %v, want %v", last, !wrong, wrong)
	}
	if a.Stats().Connected {
		t.Error("and yet it is connected")
	}
}

func TestSomethingElseOnThePortIsNamed(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	plain := httptest.NewServer(page)
	defer plain.Close()
	encrypted := httptest.NewTLSServer(page)
	defer encrypted.Close()
	unknown := grpc.NewServer()
	listener := listen(t)
	go func() { _ = unknown.Serve(listener) }()
	defer unknown.Stop()
	shell := greeter(t, "SSH-2.0-OpenSSH_9.2p1\r\n")

	for _, tt := range []struct {
		name    string
		address string
		mode    TLSMode
		want    string
	}{
		{"an HTTP/1 server", plain.Listener.Addr().String(), TLSOff, "an HTTP/1 server answers"},
		{"an HTTP/1 server, asked for TLS", plain.Listener.Addr().String(), TLSOn, "an HTTP/1 server answers"},
		{"an HTTPS server, asked without TLS", encrypted.Listener.Addr().String(), TLSOff, "tls=on"},
		{"a gRPC server of another service", listener.Addr().String(), TLSOff, "knows no diagon.v1.Diagnostics"},
		{"an SSH server", shell, TLSOff, `begins with "SSH-2.0-`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := quick(t, tt.address)
			cfg.TLS = tt.mode
			wantError(t, start(t, cfg), tt.want, true)
		})
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// greeter says a line to whoever connects, and waits for one.
func greeter(t *testing.T, line string) string {
	t.Helper()
	l := listen(t)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				fmt.Fprint(conn, line)
				_ = conn.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = bufio.NewReader(conn).ReadString('\n')
			})
		}
	})
	t.Cleanup(func() { l.Close(); work.Wait() })
	return l.Addr().String()
}

func TestARenewedCertificateIsUsedFromTheNextConnectionOn(t *testing.T) {
	ca, seen := newAuthority(t, "ca"), new(peers)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca.issue(t, "first", cert, key)
	state := uplinktest.NewState()
	server := uplinktest.Start(t, "127.0.0.1:0", state, uplinktest.Behaviour{}, ca.secured(t, ca, seen))
	proxy := uplinktest.NewProxy(t, server.Address)
	cfg := quick(t, proxy.Address)
	cfg.TLS, cfg.CAFile, cfg.CertFile, cfg.KeyFile = TLSOn, ca.file, cert, key
	a := start(t, cfg)
	connected(t, a)

	reconnect := func() {
		before := a.Stats().Connects
		proxy.Cut()
		eventually(t, "the agent is back", func() bool { return a.Stats().Connects > before })
	}
	ca.issue(t, "second", cert, key)
	reconnect()
	if err := os.WriteFile(key, []byte("half a k"), 0o600); err != nil { // caught while it is written
		t.Fatal(err)
	}
	reconnect()
	if got, want := seen.all(), "[first second second]"; got != want {
		t.Errorf("the server saw %s, want %s", got, want)
	}
}
