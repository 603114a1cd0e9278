// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// ParseTime reads an instant: "now", "now-5m" (units as in Prometheus: ms, s, m, h,
// d, w, y), RFC 3339, or Unix seconds with an optional fraction.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if rest, ok := strings.CutPrefix(text, "now"); ok {
		return relative(rest, text, now)
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return fromUnix(seconds, text)
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q: give now, now-5m, 2006-01-02T15:04:05Z or Unix seconds", text)
	}
	return t, nil
}

func relative(rest, text string, now time.Time) (time.Time, error) {
	if rest == "" {
		return now, nil
	}
	// In a URL that was not escaped, "+" arrives as a space.
	sign := time.Duration(1)
	switch rest[0] {
	case '-':
		sign = -1
	case '+', ' ':
	default:
		return time.Time{}, fmt.Errorf("time %q: after now comes - or +, as in now-5m", text)
	}
	d, err := model.ParseDuration(rest[1:])
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q: %w: give a duration as in now-5m", text, err)
	}
	return now.Add(sign * time.Duration(d)), nil
}

// maxUnix is the end of the year 9999: later ones are milliseconds by mistake.
const maxUnix = 253402300800

func fromUnix(seconds float64, text string) (time.Time, error) {
	if math.IsNaN(seconds) || seconds < 0 || seconds >= maxUnix {
		return time.Time{}, fmt.Errorf("time %q: not a time in seconds since 1970: are these milliseconds?", text)
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)).UTC(), nil
}

// The steps that a timeline can have.
const (
	minStep = time.Millisecond
	maxStep = 366 * 24 * time.Hour
)

// parseStep reads the length of a step: a duration, or seconds.
func parseStep(text string) (time.Duration, error) {
	var step time.Duration
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		// Bounded before it is converted; NaN is within no bounds.
		if seconds >= minStep.Seconds() && seconds <= maxStep.Seconds() {
			step = time.Duration(seconds * 1e9)
		}
	} else if d, err := model.ParseDuration(text); err == nil {
		step = time.Duration(d)
	}
	if step < minStep || step > maxStep {
		return 0, fmt.Errorf("step %q: give a duration as in 15s, or a number of seconds, from 1ms to 366d", text)
	}
	return step, nil
}
