// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
	"diagon.dev/diagon/pkg/server/bus"
)

// orderTimeout bounds the way from the server that was asked to the one that holds the stream.
const orderTimeout = 3 * time.Second

// headerError carries the reason when the server that holds the stream could not queue the order.
const headerError = "error"

// Send brings an order to the node's stream, whichever server holds it. nil means
// that it waits in that stream's queue. It returns ErrNotConnected when no server
// holds one.
func (r *Registry) Send(ctx context.Context, node string, m *diagonv1.BackendMessage) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("node %q: order: %w", node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	reply, err := r.bus.Conn.RequestWithContext(ctx, ordersSubject(bus.Token(node)), raw)
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("node %q: %w", node, ErrNotConnected)
	}
	if err != nil {
		return fmt.Errorf("node %q: order: %w", node, err)
	}
	if why := reply.Header.Get(headerError); why != "" {
		return fmt.Errorf("node %q: order: %s", node, why)
	}
	return nil
}

// onOrder puts an order into the stream's queue and answers its sender.
func (s *Session) onOrder(m *nats.Msg) {
	reply := nats.NewMsg(m.Reply)
	var order diagonv1.BackendMessage
	err := proto.Unmarshal(m.Data, &order)
	if err == nil {
		err = s.deliver(&order)
	}
	if err != nil {
		reply.Header.Set(headerError, err.Error())
	}
	if err := m.RespondMsg(reply); err != nil {
		s.r.log.Warn("cannot answer an order", "node", s.rec.Name, "err", err)
	}
}
