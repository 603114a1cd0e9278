// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"fmt"
	"time"

	"diagon.dev/diagon/pkg/uplink/spool"
)

// Config is what an operator decides about the connection to the server.
type Config struct {
	Channel    string  // where the server is: "host[:port][/diagnostics]", see ParseChannel
	TLS        TLSMode // auto, on or off
	CAFile     string  // PEM; "" trusts the system's
	CertFile   string  // PEM, for mutual TLS; with KeyFile or not at all
	KeyFile    string
	ServerName string // that the server's certificate must be for; "" takes the host of Channel

	Data        string       // folder for the spool and the orders seen; "" keeps both in memory
	Spool       spool.Config // bounds of the spool on disk
	MemoryBytes int64        // bound of the spool where Data cannot be written; 1 MiB at least
	BatchBytes  int          // largest batch; a gRPC server refuses more than 4 MiB unless told otherwise

	ConnectTimeout   time.Duration // until the server has answered the registration
	AnswerTimeout    time.Duration // until the server acknowledges something of what was sent
	UploadTimeout    time.Duration // for one artifact, retries included, when the caller sets no deadline
	KeepaliveTime    time.Duration // of silence before a ping; gRPC clients allow 10 s at least
	KeepaliveTimeout time.Duration // until a ping is answered
	BackoffMin       time.Duration // bound of the first wait before connecting again
	BackoffMax       time.Duration // bound of every wait, except one that the server asks for
	HeartbeatMin     time.Duration // what the server sets is kept within these two
	HeartbeatMax     time.Duration
}

// DefaultConfig connects as DESIGN section 5 says. Keepalive of 60 s and 10 s is
// what the system diagon re-implements uses, and keeps a NAT's entry alive.
func DefaultConfig() Config {
	return Config{
		TLS:              TLSAuto,
		Data:             "/var/lib/diagon",
		Spool:            spool.DefaultConfig(),
		MemoryBytes:      16 << 20,
		BatchBytes:       4<<20 - 1<<10,
		ConnectTimeout:   20 * time.Second,
		AnswerTimeout:    time.Minute,
		UploadTimeout:    time.Hour,
		KeepaliveTime:    time.Minute,
		KeepaliveTimeout: 10 * time.Second,
		BackoffMin:       time.Second,
		BackoffMax:       5 * time.Minute,
		HeartbeatMin:     time.Second,
		HeartbeatMax:     5 * time.Minute,
	}
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	if _, err := ParseChannel(c.Channel, c.TLS); err != nil {
		return err
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return fmt.Errorf("cert_file, key_file: one is set without the other")
	}
	if err := c.Spool.Validate(); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if c.MemoryBytes < 1<<20 {
		return fmt.Errorf("memory_bytes: %d is below 1 MiB", c.MemoryBytes)
	}
	if c.BatchBytes < 1<<10 {
		return fmt.Errorf("batch_bytes: %d is below 1 KiB", c.BatchBytes)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"connect_timeout", c.ConnectTimeout},
		{"answer_timeout", c.AnswerTimeout},
		{"upload_timeout", c.UploadTimeout},
		{"keepalive_time", c.KeepaliveTime},
		{"keepalive_timeout", c.KeepaliveTimeout},
		{"backoff_min", c.BackoffMin},
		{"heartbeat_min", c.HeartbeatMin},
	} {
		if d.value <= 0 {
			return fmt.Errorf("%s: %v is not positive", d.name, d.value)
		}
	}
	if c.BackoffMax < c.BackoffMin {
		return fmt.Errorf("backoff_max: %v is below backoff_min, %v", c.BackoffMax, c.BackoffMin)
	}
	if c.HeartbeatMax < c.HeartbeatMin {
		return fmt.Errorf("heartbeat_max: %v is below heartbeat_min, %v", c.HeartbeatMax, c.HeartbeatMin)
	}
	return nil
}
