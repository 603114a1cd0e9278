// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"log/slog"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // agents pack what they push; MaxRecvMsgSize holds for what is unpacked
	"google.golang.org/grpc/keepalive"
)

const (
	maxHeaders       = 16 << 10
	maxStreams       = 64 // of one connection: an agent has three and its uploads
	handshakeTimeout = 10 * time.Second
	pingTimeout      = 20 * time.Second
	minPing          = 10 * time.Second // agents that ping more often are sent away
)

// NewGRPC makes the gRPC server that the service is served by.
func NewGRPC(cfg Config, log *slog.Logger) (*grpc.Server, error) {
	creds, err := cfg.TLS.transport(log)
	if err != nil {
		return nil, err
	}
	return grpc.NewServer(
		grpc.Creds(creds),
		grpc.MaxRecvMsgSize(int(cfg.Message)),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: cfg.Keepalive, Timeout: pingTimeout,
			// gRPC varies the age by a tenth, so that a fleet does not come back at once.
			MaxConnectionAge: cfg.MaxAge, MaxConnectionAgeGrace: cfg.AgeGrace,
		}),
	), nil
}
