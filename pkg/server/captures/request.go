// SPDX-License-Identifier: Apache-2.0

package captures

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Request asks for a capture: the body of POST /captures.
type Request struct {
	Kind     string   `json:"kind"`
	Targets  Targets  `json:"targets"`
	Duration Duration `json:"duration"`
	Hz       int      `json:"hz"`       // samples per second and CPU; 0 leaves the agent's own
	Deadline Duration `json:"deadline"` // from now on; 0 leaves it to the server
}

// Targets says who is to capture.
type Targets struct {
	Nodes []string `json:"nodes"`
	PIDs  []int64  `json:"pids"` // only these processes; none means the whole node
}

// A Duration reads "10s".
type Duration time.Duration

// UnmarshalJSON takes what time.ParseDuration takes, in quotes.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("a duration is a string such as \"10s\", not %s", raw)
	}
	if text == "" {
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"10s\"", text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON is the inverse of UnmarshalJSON.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// ErrInvalid means that a request cannot be granted as it is; the wrapping error names the field.
var ErrInvalid = errors.New("invalid capture")

// kind bounds what can be asked for of one sort of capture.
type kind struct {
	shortest, longest time.Duration
	fastest           int // Hz
}

// kinds are the captures that can be asked for.
var kinds = map[string]kind{
	"cpu": {shortest: 100 * time.Millisecond, longest: 10 * time.Minute, fastest: 997},
}

const (
	maxTargets = 10_000
	maxPIDs    = 64
	maxPID     = 1 << 22 // PID_MAX_LIMIT of Linux on 64 bits

	// slack is what a node gets beyond the duration to start and to send the result, unless the request says otherwise.
	slack        = time.Minute
	maxDeadline  = time.Hour
	groupAdvance = time.Second // several targets start together: the order must have reached all of them
)

// Validate names the field that is wrong, in an error that wraps ErrInvalid.
func (r Request) Validate() error {
	k, ok := kinds[r.Kind]
	if !ok {
		return fmt.Errorf("%w: kind: %q is not one of: %s", ErrInvalid, r.Kind, strings.Join(Kinds(), ", "))
	}
	d := time.Duration(r.Duration)
	if d < k.shortest || d > k.longest {
		return fmt.Errorf("%w: duration: %v is not between %v and %v", ErrInvalid, d, k.shortest, k.longest)
	}
	if r.Hz < 0 || r.Hz > k.fastest {
		return fmt.Errorf("%w: hz: %d is not between 1 and %d (0 leaves it to the node)", ErrInvalid, r.Hz, k.fastest)
	}
	if dl := time.Duration(r.Deadline); dl != 0 && (dl < d+groupAdvance || dl > maxDeadline) {
		return fmt.Errorf("%w: deadline: %v is not between %v, the duration and a second, and %v", ErrInvalid, dl, d+groupAdvance, maxDeadline)
	}
	return r.Targets.validate()
}

func (t Targets) validate() error {
	if len(t.Nodes) == 0 {
		return fmt.Errorf("%w: targets.nodes: names no node", ErrInvalid)
	}
	if len(t.Nodes) > maxTargets {
		return fmt.Errorf("%w: targets.nodes: names %d nodes, at most %d", ErrInvalid, len(t.Nodes), maxTargets)
	}
	if len(t.PIDs) > maxPIDs {
		return fmt.Errorf("%w: targets.pids: names %d processes, at most %d", ErrInvalid, len(t.PIDs), maxPIDs)
	}
	if len(t.PIDs) > 0 && len(t.Nodes) > 1 {
		return fmt.Errorf("%w: targets.pids: a process id means something on one node only, and %d are named", ErrInvalid, len(t.Nodes))
	}
	for _, pid := range t.PIDs {
		if pid < 1 || pid > maxPID {
			return fmt.Errorf("%w: targets.pids: %d is not a process id", ErrInvalid, pid)
		}
	}
	return nil
}

// Kinds lists what can be asked for, sorted.
func Kinds() []string {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// head makes the record of a valid request.
func (r Request) head(id string, now time.Time) head {
	nodes := slices.Clone(r.Targets.Nodes)
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	pids := append([]int64{}, r.Targets.PIDs...)
	slices.Sort(pids)

	start := now
	if len(nodes) > 1 {
		start = now.Add(groupAdvance)
	}
	deadline := start.Add(time.Duration(r.Duration) + slack)
	if r.Deadline != 0 {
		deadline = now.Add(time.Duration(r.Deadline))
	}
	return head{
		ID: id, Kind: r.Kind, Created: now, Start: start, Deadline: deadline,
		Duration: time.Duration(r.Duration), Hz: r.Hz, PIDs: slices.Compact(pids), Nodes: nodes,
	}
}
