// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"time"

	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// state is what a heartbeat speaks of.
type state struct {
	health       *diagonv1.Health
	losses       []*diagonv1.Loss
	capabilities []*diagonv1.Capability
	devices      []*diagonv1.Device
}

// state asks the reporter and adds what the session knows itself.
func (s *Session) state() state {
	health := &diagonv1.Health{}
	if h := s.reporter.Health(); h != nil {
		health = proto.CloneOf(h)
	}
	sp := s.spool.Stats()
	health.SpooledBytes, health.SpooledBatches = uint64(sp.Bytes), uint64(sp.Batches)
	return state{health, s.reporter.Losses(), s.reporter.Capabilities(), s.reporter.Devices()}
}

// A beat remembers what the heartbeats of one stream have said so far.
type beat struct {
	sequence     uint64
	health       *diagonv1.Health
	losses       map[string]*diagonv1.Loss
	capabilities map[string]*diagonv1.Capability
	devices      map[string]*diagonv1.Device
}

// next makes a heartbeat: everything when full, else what changed. A delta cannot
// say that something is gone, so then the heartbeat is full too.
func (b *beat) next(st state, full bool) *diagonv1.DaemonHeartbeatRequest {
	losses, lossesGone := changed(&b.losses, st.losses, full, (*diagonv1.Loss).GetPlace)
	capabilities, capabilitiesGone := changed(&b.capabilities, st.capabilities, full, (*diagonv1.Capability).GetName)
	devices, devicesGone := changed(&b.devices, st.devices, full, func(d *diagonv1.Device) string { return d.GetKind() + " " + d.GetId() })
	if !full && (lossesGone || capabilitiesGone || devicesGone) {
		return b.next(st, true)
	}

	b.sequence++
	h := &diagonv1.DaemonHeartbeatRequest{
		Sequence:     b.sequence,
		TimeUnixNano: time.Now().UnixNano(),
		Full:         full,
		Losses:       losses,
		Capabilities: capabilities,
		Devices:      devices,
	}
	if full || !proto.Equal(st.health, b.health) {
		h.Health = st.health
		b.health = st.health
	}
	return h
}

// changed answers which of now differ from what was said, or all when full,
// and whether something said before is gone; it then remembers now as said.
func changed[T interface {
	proto.Message
	comparable
}](said *map[string]T, now []T, full bool, key func(T) string) (diff []T, gone bool) {
	current := make(map[string]T, len(now))
	for _, v := range now {
		before, ok := (*said)[key(v)]
		if full || !ok || !proto.Equal(before, v) {
			diff = append(diff, v)
		}
		current[key(v)] = proto.Clone(v).(T)
	}
	for k := range *said {
		if _, ok := current[k]; !ok {
			gone = true
		}
	}
	*said = current
	return diff, gone
}
