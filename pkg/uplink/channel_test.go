// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseChannel(t *testing.T) {
	for _, tt := range []struct {
		name    string
		channel string
		mode    TLSMode
		want    string
		err     string
	}{
		{name: "the seed's manifest", channel: "hypercomputecluster.googleapis.com/diagnostics", want: "hypercomputecluster.googleapis.com:443 tls"},
		{name: "no port is 443 with TLS", channel: "server", want: "server:443 tls"},
		{name: "no port stays TLS on the loopback", channel: "localhost/diagnostics", want: "localhost:443 tls"},
		{name: "a named port of the loopback is plain", channel: "127.0.0.1:7171", want: "127.0.0.1:7171 plain"},
		{name: "so is localhost's", channel: "localhost:7171/diagnostics", want: "localhost:7171 plain"},
		{name: "and that of the IPv6 loopback", channel: "[::1]:7171", want: "[::1]:7171 plain"},
		{name: "and the loopback written as IPv6", channel: "[::ffff:127.0.0.1]:7171", want: "[::ffff:127.0.0.1]:7171 plain"},
		{name: "a named port elsewhere is TLS", channel: "10.0.0.7:7171", want: "10.0.0.7:7171 tls"},
		{name: "a name that only begins like the loopback is elsewhere", channel: "localhost.example:7171", want: "localhost.example:7171 tls"},
		{name: "off is the operator's word", channel: "10.0.0.7:7171", mode: TLSOff, want: "10.0.0.7:7171 plain"},
		{name: "off holds without a port too", channel: "server", mode: TLSOff, want: "server:443 plain"},
		{name: "on encrypts on the loopback", channel: "127.0.0.1:7171", mode: TLSOn, want: "127.0.0.1:7171 tls"},
		{name: "an IPv6 address without port", channel: "2001:db8::1", want: "[2001:db8::1]:443 tls"},
		{name: "the same in brackets", channel: "[2001:db8::1]/diagnostics", want: "[2001:db8::1]:443 tls"},
		{name: "a slash alone", channel: "server:7171/", want: "server:7171 tls"},
		{name: "nothing", channel: "", err: "no address"},
		{name: "a URL", channel: "https://server:7171", err: `without "https://"`},
		{name: "another path", channel: "server/metrics", err: "the path is /diagnostics or none"},
		{name: "a port that is none", channel: "server:http", err: `port "http" is not 1 to 65535`},
		{name: "port 0", channel: "server:0", err: `port "0"`},
		{name: "a port and no host", channel: ":7171", err: "no valid host"},
		{name: "a space", channel: "ser ver:7171", err: "no valid host"},
		{name: "an unknown mode", channel: "server", mode: "maybe", err: `"maybe" is not auto, on or off`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.mode == "" {
				tt.mode = TLSAuto
			}
			c, err := ParseChannel(tt.channel, tt.mode)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want one saying %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := c.Address() + " plain"
			if c.TLS {
				got = c.Address() + " tls"
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzParseChannel(f *testing.F) {
	for _, s := range []string{"host", "host:1/diagnostics", "[::1]:7171", "::1", "a:b:c", "[", "]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseChannel(s, TLSAuto)
		if err != nil {
			return
		}
		again, err := ParseChannel(c.Address(), TLSAuto)
		if err != nil || again != c {
			t.Errorf("%q is %+v, and its address %q is %+v, %v", s, c, c.Address(), again, err)
		}
	})
}

func TestValidateNamesTheField(t *testing.T) {
	good := DefaultConfig()
	good.Channel = "server"
	if err := good.Validate(); err != nil {
		t.Fatalf("the default with a channel is refused: %v", err)
	}
	for _, tt := range []struct {
		field  string
		change func(*Config)
	}{
		{"channel", func(c *Config) { c.Channel = "" }},
		{"tls", func(c *Config) { c.TLS = "yes" }},
		{"cert_file, key_file", func(c *Config) { c.CertFile = "x" }},
		{"spool: bytes", func(c *Config) { c.Spool.Bytes = 1 }},
		{"memory_bytes", func(c *Config) { c.MemoryBytes = 1 }},
		{"batch_bytes", func(c *Config) { c.BatchBytes = 1 }},
		{"connect_timeout", func(c *Config) { c.ConnectTimeout = 0 }},
		{"answer_timeout", func(c *Config) { c.AnswerTimeout = -1 }},
		{"backoff_max", func(c *Config) { c.BackoffMax = 1 }},
		{"heartbeat_max", func(c *Config) { c.HeartbeatMax = 1 }},
	} {
		t.Run(tt.field, func(t *testing.T) {
			cfg := good
			tt.change(&cfg)
			if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), tt.field+":") {
				t.Errorf("err = %v, want one that begins with %q", err, fmt.Sprint(tt.field, ":"))
			}
		})
	}
}
