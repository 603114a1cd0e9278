// SPDX-License-Identifier: Apache-2.0

// Package captures keeps the captures: what was asked of which nodes, how far each
// of them is, and what came of it.
//
// A capture has one id and one start for all its targets. It is asked for
// once and then only moves forward, on the word of a node, of a person who
// cancels it, or of its deadline. Its records live on the bus, so that any
// server answers for it and a restart forgets nothing; an order for a node that is away waits for
// it until the deadline.
package captures

import (
	"fmt"
	"slices"
	"strings"
	"time"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// A Capture is the answer of the HTTP API.
type Capture struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	State      string    `json:"state"`
	Message    string    `json:"message"`
	Created    time.Time `json:"created"`
	Start      time.Time `json:"start"`
	Deadline   time.Time `json:"deadline"`
	DurationMS int64     `json:"duration_ms"`
	Hz         int       `json:"hz"`
	Targets    []Target  `json:"targets"`
}

// A Target is one node's part of a capture.
type Target struct {
	Node      string     `json:"node"`
	PIDs      []int64    `json:"pids"`
	State     string     `json:"state"`
	Message   string     `json:"message"`
	Updated   time.Time  `json:"updated"`
	Artifacts []Artifact `json:"artifacts"`
}

// An Artifact is a file that came of a capture. Its name begins with its node's.
type Artifact struct {
	Name        string `json:"name"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"` // lower-case hex
	ContentType string `json:"content_type"`
}

// States of a target, and of a capture.
const (
	Pending   = "PENDING"
	Running   = "RUNNING"
	Succeeded = "SUCCEEDED"
	Empty     = "EMPTY"
	Refused   = "REFUSED"
	Busy      = "BUSY"
	NoServer  = "NO_SERVER"
	Failed    = "FAILED"
	Expired   = "EXPIRED"
	Cancelled = "CANCELLED"
	Partial   = "PARTIAL" // of a capture only: some targets succeeded, some did not
)

// States lists every state that a capture can be in.
func States() []string {
	return []string{Pending, Running, Succeeded, Empty, Refused, Busy, NoServer, Failed, Expired, Cancelled, Partial}
}

// wireState is the state an agent names; false for one that this version does not know.
func wireState(s diagonv1.CaptureState) (string, bool) {
	name, ok := strings.CutPrefix(s.String(), "CAPTURE_STATE_")
	return name, ok && name != Partial && slices.Contains(States(), name)
}

// final says that a target's state does not change any more.
func final(state string) bool { return state != Pending && state != Running }

// head is the record of a capture; target those of its nodes, so that ten thousand
// nodes that answer at once do not fight over one record.
type head struct {
	ID       string        `json:"id"`
	Kind     string        `json:"kind"`
	Created  time.Time     `json:"created"`
	Start    time.Time     `json:"start"`
	Deadline time.Time     `json:"deadline"`
	Duration time.Duration `json:"duration"`
	Hz       int           `json:"hz"`
	PIDs     []int64       `json:"pids"`
	Nodes    []string      `json:"nodes"`
}

type target struct {
	Target
	Capture  string    `json:"capture"`
	Instance string    `json:"instance,omitempty"` // of the agent that last spoke of it
	Told     bool      `json:"told,omitempty"`     // the cancellation reached the node's stream
	Done     *verdict  `json:"done,omitempty"`     // the node's last word while its artifacts are still on the way
	Deadline time.Time `json:"deadline"`
}

// verdict is what a node said at the end.
type verdict struct {
	State     string   `json:"state"`
	Message   string   `json:"message"`
	Artifacts []string `json:"artifacts"`
}

// move puts the target into a state with its sentence.
func (t *target) move(state, message string, now time.Time) {
	t.State, t.Message, t.Updated = state, message, now
}

// heard takes what the node says. It returns false when that changes nothing: the
// target has ended, or would go back.
func (t *target) heard(state, message string, artifacts []string, instance string, now time.Time) bool {
	if final(t.State) || (t.State == Running && state == Pending) {
		return false
	}
	t.Instance = instance
	if !final(state) {
		if t.State == state && t.Message == message {
			return false
		}
		if t.Done == nil {
			t.move(state, sentence(message, state), now)
		}
		return true
	}
	t.Done = &verdict{State: state, Message: message, Artifacts: artifacts}
	t.settle(now)
	return true
}

// landed adds an artifact, once.
func (t *target) landed(a Artifact, now time.Time) bool {
	if slices.Contains(t.Artifacts, a) {
		return false
	}
	t.Artifacts = append(slices.DeleteFunc(t.Artifacts, func(b Artifact) bool { return b.Name == a.Name }), a)
	if !final(t.State) {
		t.settle(now)
	}
	return true
}

// settle ends the target when the node has had its last word and what it announced is here.
func (t *target) settle(now time.Time) {
	if t.Done == nil {
		return
	}
	var missing []string
	for _, name := range t.Done.Artifacts {
		have := slices.ContainsFunc(t.Artifacts, func(a Artifact) bool { return a.Name == ArtifactName(t.Node, name) })
		if !have {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.move(Running, fmt.Sprintf("the node is done; waiting for its %s", strings.Join(missing, ", ")), now)
		return
	}
	t.move(t.Done.State, sentence(t.Done.Message, t.Done.State), now)
	t.Done = nil
}

// sentence is what is said of a state when the node gave no words.
func sentence(message, state string) string {
	if message != "" {
		return message
	}
	switch state {
	case Pending:
		return "the node has the order"
	case Running:
		return "the node is capturing"
	case Succeeded:
		return "done"
	case Empty:
		return "it ran, and there was nothing to see"
	}
	return "the node gave no reason"
}

// ArtifactName is an artifact's name in the API: its node's before its own.
func ArtifactName(node, name string) string { return node + "." + name }

// overall adds up the targets: a state, and the sentence for it.
func overall(targets []Target) (state, message string) {
	counts := map[string]int{}
	for _, t := range targets {
		counts[t.State]++
	}
	total := len(targets)
	if total == 1 {
		return targets[0].State, targets[0].Message
	}
	open := counts[Pending] + counts[Running]
	switch {
	case open == total && counts[Running] == 0:
		return Pending, fmt.Sprintf("none of %d targets has begun", total)
	case open > 0:
		return Running, fmt.Sprintf("%d of %d targets have ended", total-open, total)
	case counts[Succeeded] == total:
		return Succeeded, fmt.Sprintf("all %d targets succeeded", total)
	case counts[Succeeded] > 0:
		return Partial, fmt.Sprintf("%d of %d targets succeeded; %s", counts[Succeeded], total, firstOther(targets))
	case counts[targets[0].State] == total:
		return targets[0].State, firstOther(targets)
	}
	return Failed, fmt.Sprintf("none of %d targets succeeded; %s", total, firstOther(targets))
}

// firstOther gives one target that did not succeed as an example.
func firstOther(targets []Target) string {
	for _, t := range targets {
		if t.State != Succeeded {
			return fmt.Sprintf("%s: %s", t.Node, t.Message)
		}
	}
	return ""
}
