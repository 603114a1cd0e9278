// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Identity says how far an agent's word on its own name is believed.
type Identity string

const (
	// IdentityOff believes the agent.
	IdentityOff Identity = "off"
	// IdentityMatch believes its certificate, where one is asked for (tls-client-ca): the common name,
	// a DNS name, or the last part of a URI (SPIFFE) must be the node's name.
	IdentityMatch Identity = "match"
)

func (i Identity) validate() error {
	if i != IdentityOff && i != IdentityMatch {
		return fmt.Errorf("identity: %q is neither %q nor %q", i, IdentityOff, IdentityMatch)
	}
	return nil
}

// allowed says whether the peer may speak for the node.
func (s *Server) allowed(ctx context.Context, node string) error {
	if s.cfg.Identity == IdentityOff || s.cfg.TLS.ClientCA == "" {
		return nil
	}
	cert, err := peerCertificate(ctx)
	if err != nil {
		return status.Errorf(codes.Unauthenticated, "%v", err)
	}
	if !speaksFor(cert, node) {
		s.metrics.impostors.Inc()
		s.log.Warn("certificate does not allow the node's name", "node", node, "common_name", cert.Subject.CommonName, "dns_names", cert.DNSNames)
		return status.Errorf(codes.PermissionDenied, "the certificate of %q does not allow the node name %q", cert.Subject.CommonName, node)
	}
	return nil
}

func peerCertificate(ctx context.Context) (*x509.Certificate, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, errors.New("no peer")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil, errors.New("no client certificate")
	}
	return info.State.PeerCertificates[0], nil
}

// speaksFor compares whole names: a wildcard would make its holder every node.
func speaksFor(cert *x509.Certificate, node string) bool {
	if strings.EqualFold(cert.Subject.CommonName, node) {
		return true
	}
	if slices.ContainsFunc(cert.DNSNames, func(n string) bool { return strings.EqualFold(n, node) }) {
		return true
	}
	for _, u := range cert.URIs {
		if u.Path != "" && path.Base(u.Path) == node {
			return true
		}
	}
	return false
}

const maxNode = 200 // with an artifact's name behind it, it is a file's name

// validNode keeps node names to what host names and Kubernetes nodes are made of.
func validNode(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case len(name) > maxNode:
		return fmt.Errorf("has %d bytes, at most %d", len(name), maxNode)
	case strings.HasPrefix(name, ".") || strings.ContainsFunc(name, foreign):
		return fmt.Errorf("%q: letters, digits, '.', '_' and '-' make a name", name)
	}
	return nil
}

func foreign(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
}

// validID checks a boot's or an instance's id.
func validID(id string) error {
	if id == "" || len(id) > 128 {
		return fmt.Errorf("has %d bytes, 1 to 128 are right", len(id))
	}
	for _, c := range id {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%q: holds more than printable ASCII", id)
		}
	}
	return nil
}
