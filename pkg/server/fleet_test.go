// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/captures"
)

func TestACaptureAskedOfOneServerReachesAnAgentOnAnother(t *testing.T) {
	cfg := testConfig(t)
	cfg.Name, cfg.Bus.Listen = "one", "127.0.0.1:0"
	one := start(t, cfg)
	cfg = testConfig(t)
	cfg.Name, cfg.Bus.URL = "two", one.BusURL()
	two := start(t, cfg)

	onTwo := dial(t, two.GRPCAddr(), insecure.NewCredentials())
	a := connect(t, onTwo, "n", "i")
	hear[*diagonv1.BackendMessage_Registration](a)
	waitFor(t, "the other server sees the node", func() bool { return one.registry.Exists("n") == nil && nodeOf(t, one, "n").Connected })
	if got := nodeOf(t, one, "n").Server; got != "two" {
		t.Errorf("the stream is said to be at %q", got)
	}

	c := ask(t, one, `"n"`, "30s")
	if got := hear[*diagonv1.BackendMessage_Capture](a).Capture.GetId(); got != c.ID {
		t.Fatalf("order %q, want %q", got, c.ID)
	}
	a.report(c.ID, stateSucceeded, "done")
	captureIs(t, one, c.ID, captures.Succeeded)
	captureIs(t, two, c.ID, captures.Succeeded)

	// The agent moves to the other server: the stream it left is closed there.
	moved := connect(t, dial(t, one.GRPCAddr(), insecure.NewCredentials()), "n", "i2")
	hear[*diagonv1.BackendMessage_Registration](moved)
	if err := a.ends(); !strings.Contains(err.Error(), "on server one") {
		t.Errorf("the old stream ended with %v", err)
	}
	waitFor(t, "both know where the node is", func() bool {
		return nodeOf(t, one, "n").Server == "one" && nodeOf(t, two, "n").Server == "one" && nodeOf(t, two, "n").Connected
	})
}

// An authority signs certificates into a folder.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true}, nil, nil)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name+".pem") }

func (a *authority) issue(name string, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	template.SerialNumber, template.Subject = serial, pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name, "CERTIFICATE", der)
	a.write(name+"-key", "EC PRIVATE KEY", keyDER)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// agentCredentials trust the authority and show the certificate of that name; "" shows none.
func (a *authority) agentCredentials(name string) credentials.TransportCredentials {
	a.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	cfg := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.path(name), a.path(name+"-key"))
		if err != nil {
			a.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(cfg)
}

func TestWithMutualTLSTheCertificateNamesTheNode(t *testing.T) {
	ca := newAuthority(t)
	ca.issue("server", &x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, ca.cert, ca.key)
	ca.issue("n", &x509.Certificate{}, ca.cert, ca.key)
	ca.issue("pool", &x509.Certificate{DNSNames: []string{"m", "*.nodes"}}, ca.cert, ca.key)
	cfg := testConfig(t)
	cfg.Ingest.TLS.Cert, cfg.Ingest.TLS.Key, cfg.Ingest.TLS.ClientCA = ca.path("server"), ca.path("server-key"), ca.path("ca")
	s := start(t, cfg)

	for _, tt := range []struct {
		name, cert, node string
		want             codes.Code
	}{
		{"its common name is the node", "n", "n", codes.OK},
		{"one of its DNS names is the node", "pool", "m", codes.OK},
		{"it is of another node", "n", "m", codes.PermissionDenied},
		{"a wildcard is no node", "pool", "x.nodes", codes.PermissionDenied},
		{"there is none", "", "n", codes.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, s.GRPCAddr(), ca.agentCredentials(tt.cert))
			_, _, err := push(t, c, batch(t, tt.node, 1, 1))
			if status.Code(err) != tt.want {
				t.Errorf("push = %v, want %v", err, tt.want)
			}
			stream, err := c.Connect(t.Context())
			if err != nil { // without a connection there is no stream
				if status.Code(err) != tt.want {
					t.Errorf("connect = %v, want %v", err, tt.want)
				}
				return
			}
			_ = stream.Send(&diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_Registration{
				Registration: &diagonv1.DaemonRegistrationRequest{Node: tt.node, BootId: "b", InstanceId: "i"}}})
			if _, err := stream.Recv(); status.Code(err) != tt.want {
				t.Errorf("connect = %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("plain text is not spoken", func(t *testing.T) {
		if _, _, err := push(t, dial(t, s.GRPCAddr(), insecure.NewCredentials()), batch(t, "n", 1, 1)); status.Code(err) != codes.Unavailable {
			t.Errorf("push = %v", err)
		}
	})
}

func TestTLSWithoutClientCertificates(t *testing.T) {
	ca := newAuthority(t)
	ca.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, ca.cert, ca.key)
	cfg := testConfig(t)
	cfg.Ingest.TLS.Cert, cfg.Ingest.TLS.Key = ca.path("server"), ca.path("server-key")
	s := start(t, cfg)
	if durable, _, err := push(t, dial(t, s.GRPCAddr(), ca.agentCredentials("")), batch(t, "n", 1, 1)); err != nil || durable != 1 {
		t.Errorf("push = %d, %v", durable, err)
	}
}
