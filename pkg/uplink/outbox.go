// SPDX-License-Identifier: Apache-2.0

package uplink

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// maxReports bounds the captures whose state is remembered.
const maxReports = 256

// An outbox keeps what the server should hear: of each capture the newest state,
// and the newest word on settings.
//
// The wire has no answer to an update, so a final state is kept until the stream that
// carried it has held for so long (settle) that a keepalive ping behind it must have been
// answered: then the server's side has received it. Until then it is told again on every
// new stream, which is harmless.
type outbox struct {
	settle time.Duration
	ready  chan struct{} // holds a token when there is something to take

	mu           sync.Mutex
	reports      []*report // by age
	settings     *diagonv1.SettingsStatus
	settingsSent bool
}

type report struct {
	update *diagonv1.CaptureUpdate
	sent   time.Time // on the present stream; zero when it is still to be sent
	held   bool      // by the server; kept only in case it asks again
}

func newOutbox(settle time.Duration) *outbox {
	return &outbox{settle: settle, ready: make(chan struct{}, 1)}
}

// capture notes the newest state of a capture.
func (o *outbox) capture(u *diagonv1.CaptureUpdate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.wake()
	u = proto.CloneOf(u)
	for _, r := range o.reports {
		if r.update.GetId() == u.GetId() {
			*r = report{update: u}
			return
		}
	}
	if len(o.reports) == maxReports {
		o.reports = slices.Delete(o.reports, 0, 1)
	}
	o.reports = append(o.reports, &report{update: u})
}

// again makes the state of a capture be told once more; false when it is not known.
func (o *outbox) again(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.reports {
		if r.update.GetId() == id {
			*r = report{update: r.update}
			o.wake()
			return true
		}
	}
	return false
}

func (o *outbox) settingsStatus(st *diagonv1.SettingsStatus) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settings, o.settingsSent = proto.CloneOf(st), false
	o.wake()
}

// begin starts a new stream: it answers what the registration says of captures.
// The same is told again as updates.
func (o *outbox) begin() []*diagonv1.CaptureUpdate {
	o.mu.Lock()
	defer o.mu.Unlock()
	var known []*diagonv1.CaptureUpdate
	for _, r := range o.reports {
		if !r.held {
			known = append(known, r.update)
		}
	}
	o.wake()
	return known
}

// take answers what is to be sent now.
func (o *outbox) take() []*diagonv1.DaemonMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	var messages []*diagonv1.DaemonMessage
	if o.settings != nil && !o.settingsSent {
		messages = append(messages, &diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_SettingsStatus{SettingsStatus: o.settings}})
		o.settingsSent = true
	}
	for _, r := range o.reports {
		if r.sent.IsZero() {
			r.sent = time.Now()
			messages = append(messages, &diagonv1.DaemonMessage{Message: &diagonv1.DaemonMessage_CaptureUpdate{CaptureUpdate: r.update}})
		}
	}
	return messages
}

// end is called when a stream is lost: what it carried long enough ago is held, the
// rest is to be sent again.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.reports {
		switch {
		case r.held:
		case final(r.update.GetState()) && !r.sent.IsZero() && time.Since(r.sent) > o.settle:
			r.held = true
		default:
			r.sent = time.Time{}
		}
	}
	o.settingsSent = false
}

func (o *outbox) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// final reports whether a capture in this state never changes again.
func final(s diagonv1.CaptureState) bool {
	return s >= diagonv1.CaptureState_CAPTURE_STATE_SUCCEEDED
}
