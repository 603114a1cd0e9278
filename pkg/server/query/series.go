// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"math"
	"net/http"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

type seriesInfo struct {
	Metric string            `json:"metric"`
	Labels map[string]string `json:"labels"`
	Points [][2]any          `json:"points"` // Unix milliseconds, and the value: null where it is no number
}

// series answers a timeline: of a sample type its values per second, of any other metric its readings.
func (h *handler) series(ctx context.Context, p params, _ *http.Request) (body, error) {
	metric := p["metric"]
	if metric == "" {
		return body{}, badRequest("metric is missing: give a sample type, or one of /api/v1/labels/__name__/values")
	}
	sel, err := p.selection(h.cfg, "")
	if err != nil {
		return body{}, err
	}
	step, err := p.step(sel, h.cfg.MaxPoints)
	if err != nil {
		return body{}, err
	}
	var found []store.Series
	if t, ok := profile.ParseType(metric); ok {
		found, err = h.store.Rates(ctx, t, sel, step)
	} else {
		found, err = h.store.Readings(ctx, metric, sel, step)
	}
	if err != nil {
		return body{}, err
	}
	cut := len(found) > h.cfg.MaxSeries
	out := []seriesInfo{}
	for _, s := range found[:min(len(found), h.cfg.MaxSeries)] {
		out = append(out, infoOf(s))
	}
	return asJSON(map[string]any{"series": out, "cut": cut}), nil
}

func infoOf(s store.Series) seriesInfo {
	info := seriesInfo{Metric: s.Metric, Labels: make(map[string]string), Points: make([][2]any, len(s.Points))}
	for _, l := range s.Labels {
		info.Labels[l.Name] = l.Value
	}
	for i, p := range s.Points {
		info.Points[i] = [2]any{p.Time.UnixMilli(), p.Value}
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			info.Points[i][1] = nil
		}
	}
	return info
}
