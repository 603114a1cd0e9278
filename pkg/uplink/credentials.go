// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// A keychain reads the files that prove who is who, each time a connection is
// made: a renewed certificate is used from the next connection on. A connection
// that stands outlives its certificate, as TLS has it; the server ends it
// when it wants the new one. While the files cannot be read (half renewed) the last
// good ones serve on.
type keychain struct {
	caFile, certFile, keyFile string
	serverName                string
	log                       *slog.Logger

	mu    sync.Mutex
	roots *x509.CertPool
	cert  *tls.Certificate
}

// credentials answers what the next connection uses; asked is called when the server
// wants to know who this is.
func (k *keychain) credentials(encrypted bool, asked func()) (credentials.TransportCredentials, error) {
	if !encrypted {
		return insecure.NewCredentials(), nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.reload(); err != nil {
		if k.roots == nil && k.cert == nil {
			return nil, err
		}
		k.log.Warn("Cannot reload TLS files; the last good ones are used.", "error", err)
	}
	cfg := &tls.Config{ServerName: k.serverName, RootCAs: k.roots, MinVersion: tls.VersionTLS12}
	cert := k.cert
	if cert == nil {
		cert = new(tls.Certificate) // none, in crypto/tls's words
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked()
		return cert, nil
	}
	return credentials.NewTLS(cfg), nil
}

// reload takes all files or none.
func (k *keychain) reload() error {
	roots, cert := (*x509.CertPool)(nil), (*tls.Certificate)(nil)
	if k.caFile != "" {
		pem, err := os.ReadFile(k.caFile)
		if err != nil {
			return fmt.Errorf("ca file: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca file: %s: no PEM certificate in it", k.caFile)
		}
	}
	if k.certFile != "" {
		pair, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
		if err != nil {
			return fmt.Errorf("cert file %s, key file %s: %w", k.certFile, k.keyFile, err)
		}
		cert = &pair
	}
	k.roots, k.cert = roots, cert
	return nil
}
