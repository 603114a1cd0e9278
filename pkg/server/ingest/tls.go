// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// TLS names PEM files. None of them: plain text.
type TLS struct {
	Cert     string // the server's certificate, with its chain
	Key      string
	ClientCA string // who signs agents' certificates; set, it asks each agent for one
}

func (t TLS) validate() error {
	if (t.Cert == "") != (t.Key == "") {
		return errors.New("tls-cert, tls-key: one is set without the other")
	}
	if t.ClientCA != "" && t.Cert == "" {
		return errors.New("tls-client-ca: needs tls-cert and tls-key as well")
	}
	return nil
}

// tlsCheckEvery bounds how often the files are looked at.
const tlsCheckEvery = 10 * time.Second

// transport makes the credentials. The files are read now, so that a wrong one
// is an error at the start, and again when they change, so that a renewed
// certificate is used without a restart.
func (t TLS) transport(log *slog.Logger) (credentials.TransportCredentials, error) {
	if t.Cert == "" {
		return insecure.NewCredentials(), nil
	}
	k := &keeper{files: t, log: log}
	if err := k.load(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.config(), nil },
	}), nil
}

// A keeper holds the configuration made of the files as they were last right.
type keeper struct {
	files TLS
	log   *slog.Logger

	mu      sync.Mutex
	current *tls.Config
	stamp   string
	checked time.Time
}

func (k *keeper) config() *tls.Config {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.checked) > tlsCheckEvery && k.files.stamp() != k.stamp {
		if err := k.load(); err != nil {
			k.log.Warn("cannot reload TLS files; the last good ones are used", "err", err)
		} else {
			k.log.Info("TLS files are reloaded", "cert", k.files.Cert)
		}
	}
	return k.current
}

func (k *keeper) load() error {
	k.checked = time.Now()
	stamp := k.files.stamp()
	pair, err := tls.LoadX509KeyPair(k.files.Cert, k.files.Key)
	if err != nil {
		return fmt.Errorf("tls-cert, tls-key: %w", err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair}}
	if k.files.ClientCA != "" {
		pem, err := os.ReadFile(k.files.ClientCA)
		if err != nil {
			return fmt.Errorf("tls-client-ca: %w", err)
		}
		cfg.ClientCAs = x509.NewCertPool()
		if !cfg.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("tls-client-ca: %s: no PEM certificate in it", k.files.ClientCA)
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	k.current, k.stamp = cfg, stamp
	return nil
}

// stamp changes when a file does.
func (t TLS) stamp() string {
	s := ""
	for _, path := range []string{t.Cert, t.Key, t.ClientCA} {
		if info, err := os.Stat(path); err == nil {
			s += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), ";")
		}
	}
	return s
}
