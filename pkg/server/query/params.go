// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// params are the parameters of a URL, the first of each name.
type params map[string]string

// parseParams reads what follows the question mark. Unlike net/url it takes a
// semicolon for what it is, a character: people type matchers without escaping them.
func parseParams(raw string) (params, error) {
	out := make(params)
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		rawKey, rawValue, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(rawKey)
		if err != nil {
			return nil, badRequest("parameter %q: %w: write %% as %%25", rawKey, err)
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, badRequest("parameter %s: %w: write %% as %%25", key, err)
		}
		if _, ok := out[key]; !ok {
			out[key] = value
		}
	}
	return out, nil
}

// only refuses what a call does not read: a mistyped parameter would be the answer to another question.
func (p params) only(known []string) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(known, name) {
			return badRequest("parameter %.80q: there is no such one here: give some of %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// defaultRange is what is asked for when nobody says from when.
const defaultRange = 5 * time.Minute

// selection reads query, from, to and capture; prefix is "base_" for those of a diff's base,
// whose time is the other side's where it is not given.
func (p params) selection(cfg Config, prefix string) (store.Selection, error) {
	var sel store.Selection
	matchers, err := ParseSelector(p.or(prefix+"query", p["query"], prefix))
	if err != nil {
		return sel, badRequest("%w", err)
	}
	sel.Matchers = matchers
	sel.Capture = p["capture"]

	now := cfg.Now()
	sel.To, sel.From = now, now.Add(-defaultRange)
	if sel.Capture != "" {
		// A capture is found by its id, whenever it was.
		sel.To, sel.From = now.Add(time.Hour), now.Add(time.Hour-cfg.MaxRange)
	}
	if to := p.or(prefix+"to", p["to"], prefix); to != "" {
		if sel.To, err = ParseTime(to, now); err != nil {
			return sel, badRequest("%sto: %w", prefix, err)
		}
		if sel.Capture == "" {
			sel.From = sel.To.Add(-defaultRange)
		}
	}
	if from := p.or(prefix+"from", p["from"], prefix); from != "" {
		if sel.From, err = ParseTime(from, now); err != nil {
			return sel, badRequest("%sfrom: %w", prefix, err)
		}
	}
	if !sel.From.Before(sel.To) {
		return sel, badRequest("%sfrom %s is not before %sto %s", prefix, stamp(sel.From), prefix, stamp(sel.To))
	}
	if length := sel.To.Sub(sel.From); length > cfg.MaxRange {
		return sel, badRequest("%v between %sfrom and %sto is too long: at most %v at once", length, prefix, prefix, cfg.MaxRange)
	}
	return sel, nil
}

// or is the parameter name, or else what the other side of a diff has.
func (p params) or(name, other, prefix string) string {
	if v, ok := p[name]; ok || prefix == "" {
		return v
	}
	return other
}

// sampleType reads type.
func (p params) sampleType() (profile.Type, error) {
	name := p["type"]
	if name == "" {
		return profile.CPU, nil
	}
	t, ok := profile.ParseType(name)
	if !ok {
		return 0, badRequest("type %q: there is no such sample type: give one of %s", name, typeList())
	}
	return t, nil
}

func typeList() string {
	var names []string
	for t := range profile.Type(profile.NumTypes) {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// count reads a whole number from 1 to limit.
func (p params) count(name string, fallback, limit int) (int, error) {
	text := p[name]
	if text == "" {
		return min(fallback, limit), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > limit {
		return 0, badRequest("%s %q: give a number from 1 to %d", name, text, limit)
	}
	return n, nil
}

// oneOf reads a word; the first choice is the default.
func (p params) oneOf(name string, choices ...string) (string, error) {
	text := p[name]
	if text == "" {
		return choices[0], nil
	}
	for _, c := range choices {
		if text == c {
			return c, nil
		}
	}
	return "", badRequest("%s %q: give one of %s", name, text, strings.Join(choices, ", "))
}

// stepsOfRange is how many points a timeline has when nobody says.
const stepsOfRange = 300

// step reads step; the default makes stepsOfRange points, no shorter than a second.
func (p params) step(sel store.Selection, maxPoints int) (time.Duration, error) {
	length := sel.To.Sub(sel.From)
	step := max(time.Second, length/stepsOfRange)
	if text := p["step"]; text != "" {
		var err error
		if step, err = parseStep(text); err != nil {
			return 0, badRequest("%w", err)
		}
	}
	if length/step > time.Duration(maxPoints) {
		return 0, badRequest("step %v makes %d points: at most %d at once, so give a step of %v or more", step, length/step, maxPoints, length/time.Duration(maxPoints)+1)
	}
	return step, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// A requestError is the asker's fault.
type requestError struct{ error }

func badRequest(format string, args ...any) error { return requestError{fmt.Errorf(format, args...)} }
