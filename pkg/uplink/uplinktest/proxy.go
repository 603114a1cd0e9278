// SPDX-License-Identifier: Apache-2.0

package uplinktest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy passes TCP on to a server, until it is told to cut or to mute.
type Proxy struct {
	Address string

	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	target string
	pairs  map[*pair]bool
	refuse bool
	muted  bool
	budget int64 // bytes up until the next cut; negative for no cut
	passed int64
}

// A pair is a connection through the proxy.
type pair struct{ down, up net.Conn }

func (p *pair) close() {
	p.down.Close()
	p.up.Close()
}

// NewProxy listens on a free port and passes on to target until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("uplinktest: %v", err)
	}
	p := &Proxy{Address: listener.Addr().String(), listener: listener, target: target, pairs: make(map[*pair]bool), budget: -1}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.Cut()
		p.work.Wait()
	})
	return p
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// CutAfter cuts once n more bytes have gone up.
func (p *Proxy) CutAfter(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = n
}

// Refuse makes the proxy close what it accepts.
func (p *Proxy) Refuse(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = yes
}

// Mute makes the proxy swallow all bytes while connections stand, as a network
// does that loses packets. Connections that were mute stay so.
func (p *Proxy) Mute(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = yes
}

// Passed is how many bytes have gone up.
func (p *Proxy) Passed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

func (p *Proxy) cut() {
	for c := range p.pairs {
		c.close()
	}
	clear(p.pairs)
}

func (p *Proxy) accept() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse, target := p.refuse, p.target
		p.mu.Unlock()
		if refuse {
			down.Close()
			continue
		}
		up, err := net.Dial("tcp", target)
		if err != nil {
			down.Close()
			continue
		}
		c := &pair{down, up}
		p.mu.Lock()
		p.pairs[c] = true
		p.mu.Unlock()
		p.work.Go(func() { p.pass(c, up, down, true) })
		p.work.Go(func() { p.pass(c, down, up, false) })
	}
}

func (p *Proxy) pass(c *pair, to, from net.Conn, upwards bool) {
	defer func() {
		c.close()
		p.mu.Lock()
		delete(p.pairs, c)
		p.mu.Unlock()
	}()
	buf := make([]byte, 4<<10)
	lost := false // once bytes are missing, nothing behind them may pass
	for {
		n, err := from.Read(buf)
		if n > 0 {
			allowed, cut, muted := p.allow(n, upwards)
			lost = lost || muted
			if !lost {
				if _, err := to.Write(buf[:allowed]); err != nil {
					return
				}
			}
			if cut {
				p.Cut()
				return
			}
		}
		if err == io.EOF || err != nil {
			return
		}
	}
}

// allow answers how many of n bytes may pass and whether the cut comes behind them.
func (p *Proxy) allow(n int, upwards bool) (allowed int, cut, muted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !upwards {
		return n, false, p.muted
	}
	if p.budget >= 0 {
		if int64(n) >= p.budget {
			n, cut = int(p.budget), true
			p.budget = -1
		} else {
			p.budget -= int64(n)
		}
	}
	p.passed += int64(n)
	return n, cut, p.muted
}
