// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// ParseSelector reads a set of label matchers as Prometheus writes them:
// {node="n",rank=~"1.*"}. Braces may be left out, and nothing at all selects everything.
// Unlike Prometheus it has no metric before the braces: that is a parameter of its own.
func ParseSelector(text string) ([]*labels.Matcher, error) {
	inner := strings.TrimSpace(text)
	if strings.HasPrefix(inner, "{") && strings.HasSuffix(inner, "}") {
		inner = strings.TrimSpace(inner[1 : len(inner)-1])
	}
	if inner == "" {
		return nil, nil
	}
	// Prometheus refuses a selector that would match everything, such as {rank=""}; with a metric before it, it does not.
	const metric = "x"
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(metric + "{" + inner + "}")
	if err != nil {
		return nil, fmt.Errorf("query %q: %w: give label matchers as in {node=\"n\",workload=~\"llama.*\"}", text, err)
	}
	out := matchers[:0]
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel {
			if m.Type == labels.MatchEqual && m.Value == metric {
				continue
			}
			return nil, fmt.Errorf("query %q: %s is no label of samples: give the parameter type or metric instead", text, model.MetricNameLabel)
		}
		out = append(out, m)
	}
	return out, nil
}
