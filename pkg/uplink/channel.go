// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A TLSMode says whether the connection is encrypted.
type TLSMode string

const (
	// TLSAuto encrypts, except to a port of this host's loopback that is named and
	// is not 443. What leaves the host is encrypted unless someone said otherwise,
	// and the server on the same machine needs no certificate.
	TLSAuto TLSMode = "auto"
	TLSOn   TLSMode = "on"
	// TLSOff never encrypts: the operator's word that the network is trusted.
	TLSOff TLSMode = "off"
)

const (
	defaultPort = "443"
	channelPath = "/diagnostics"
)

// A Channel is the address of a server.
type Channel struct {
	Host string // a name, or an IP address without brackets
	Port string // decimal
	TLS  bool
}

// Address is what to dial: host:port, brackets around an IPv6 address.
func (c Channel) Address() string { return net.JoinHostPort(c.Host, c.Port) }

// ParseChannel understands "host[:port][/diagnostics]". Without a port it is 443,
// encrypted unless mode is off. The path names the service and changes nothing: it is
// how the manifests of the system that diagon re-implements write the address.
func ParseChannel(channel string, mode TLSMode) (Channel, error) {
	switch mode {
	case TLSAuto, TLSOn, TLSOff:
	default:
		return Channel{}, fmt.Errorf("tls: %q is not auto, on or off", mode)
	}
	if channel == "" {
		return Channel{}, fmt.Errorf("channel: no address; want host[:port][/diagnostics]")
	}
	if scheme, _, ok := strings.Cut(channel, "://"); ok {
		return Channel{}, fmt.Errorf("channel: %q: want host[:port][/diagnostics] without %q; TLS is asked for apart", channel, scheme+"://")
	}
	address, path, hasPath := strings.Cut(channel, "/")
	if hasPath && "/"+path != channelPath && path != "" {
		return Channel{}, fmt.Errorf("channel: %q: the path is %s or none", channel, channelPath)
	}

	c := Channel{Host: address, Port: defaultPort}
	if hasPort(address) {
		var err error
		if c.Host, c.Port, err = net.SplitHostPort(address); err != nil {
			return Channel{}, fmt.Errorf("channel: %q: %w", channel, err)
		}
	}
	c.Host = strings.TrimSuffix(strings.TrimPrefix(c.Host, "["), "]")
	if c.Host == "" || strings.ContainsAny(c.Host, "[] \t\r\n@?#%") {
		return Channel{}, fmt.Errorf("channel: %q: no valid host", channel)
	}
	if n, err := strconv.ParseUint(c.Port, 10, 16); err != nil || n == 0 {
		return Channel{}, fmt.Errorf("channel: %q: port %q is not 1 to 65535", channel, c.Port)
	}
	c.TLS = mode == TLSOn || mode == TLSAuto && (c.Port == defaultPort || !isLoopback(c.Host))
	return c, nil
}

// hasPort tells "::1" and "[::1]" from "[::1]:7171" and "name:7171".
func hasPort(address string) bool {
	if strings.HasPrefix(address, "[") {
		return strings.Contains(address, "]:")
	}
	return strings.Count(address, ":") == 1
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
