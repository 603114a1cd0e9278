// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"net/http"
)

type typeInfo struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
}

func (h *handler) types(ctx context.Context, p params, _ *http.Request) (body, error) {
	sel, err := p.selection(h.cfg, "")
	if err != nil {
		return body{}, err
	}
	types, err := h.store.Types(ctx, sel)
	if err != nil {
		return body{}, err
	}
	out := []typeInfo{}
	for _, t := range types {
		out = append(out, typeInfo{t.String(), t.Unit()})
	}
	return asJSON(map[string]any{"types": out}), nil
}

func (h *handler) labels(ctx context.Context, p params, _ *http.Request) (body, error) {
	sel, err := p.selection(h.cfg, "")
	if err != nil {
		return body{}, err
	}
	names, err := h.store.LabelNames(ctx, sel)
	if err != nil {
		return body{}, err
	}
	return asJSON(map[string]any{"labels": notNull(names)}), nil
}

// defaultValues is what a list to choose from shows at most when nobody says.
const defaultValues = 1000

func (h *handler) labelValues(ctx context.Context, p params, r *http.Request) (body, error) {
	limit, err := p.count("limit", defaultValues, h.cfg.MaxValues)
	if err != nil {
		return body{}, err
	}
	sel, err := p.selection(h.cfg, "")
	if err != nil {
		return body{}, err
	}
	values, cut, err := h.store.LabelValues(ctx, r.PathValue("name"), sel, limit)
	if err != nil {
		return body{}, err
	}
	return asJSON(map[string]any{"values": notNull(values), "cut": cut}), nil
}

// notNull makes JSON write a list that is empty as [].
func notNull(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
