// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"context"
	"net/http"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/server/store"
)

// defaultNodes is what a page draws easily.
const defaultNodes = 8192

const textPlain = "text/plain; charset=utf-8"

// profiles answers one selection in one of the formats.
func (h *handler) profiles(ctx context.Context, p params, _ *http.Request) (body, error) {
	typ, err := p.sampleType()
	if err != nil {
		return body{}, err
	}
	format, err := p.oneOf("format", "flamegraph", "top", "pprof", "folded", "speedscope")
	if err != nil {
		return body{}, err
	}
	maxNodes, err := p.count("max_nodes", defaultNodes, h.cfg.MaxNodes)
	if err != nil {
		return body{}, err
	}
	sel, err := p.selection(h.cfg, "")
	if err != nil {
		return body{}, err
	}
	w, err := h.store.Stacks(ctx, typ, sel, h.cfg.MaxStacks)
	if err != nil {
		return body{}, err
	}
	return shape(format, typ, w, sel, maxNodes), nil
}

func shape(format string, typ profile.Type, w store.Weights, sel store.Selection, maxNodes int) body {
	switch format {
	case "top":
		return asJSON(NewTop(typ, w, maxNodes))
	case "pprof":
		return body{contentType: "application/octet-stream", packed: true, write: func(b *bytes.Buffer) error { return WritePprof(b, typ, w, sel) }}
	case "folded":
		return body{contentType: textPlain, write: func(b *bytes.Buffer) error { return WriteFolded(b, w.Stacks) }}
	case "speedscope":
		return asJSON(NewSpeedscope(typ, w))
	}
	g := NewFlameGraph(typ, w, maxNodes)
	g.From, g.To = stamp(sel.From), stamp(sel.To)
	return asJSON(g)
}

// diff answers two selections beside each other.
func (h *handler) diff(ctx context.Context, p params, _ *http.Request) (body, error) {
	typ, err := p.sampleType()
	if err != nil {
		return body{}, err
	}
	format, err := p.oneOf("format", "flamegraph", "folded")
	if err != nil {
		return body{}, err
	}
	maxNodes, err := p.count("max_nodes", defaultNodes, h.cfg.MaxNodes)
	if err != nil {
		return body{}, err
	}
	sel, err := p.selection(h.cfg, "")
	if err != nil {
		return body{}, err
	}
	baseSel, err := p.selection(h.cfg, "base_")
	if err != nil {
		return body{}, err
	}
	w, err := h.store.Stacks(ctx, typ, sel, h.cfg.MaxStacks)
	if err != nil {
		return body{}, err
	}
	base, err := h.store.Stacks(ctx, typ, baseSel, h.cfg.MaxStacks)
	if err != nil {
		return body{}, err
	}
	if format == "folded" {
		return body{contentType: textPlain, write: func(b *bytes.Buffer) error { return WriteFoldedDiff(b, w.Stacks, base.Stacks) }}, nil
	}
	g := NewDiff(typ, w, base, maxNodes)
	g.From, g.To = stamp(sel.From), stamp(sel.To)
	return asJSON(g), nil
}
