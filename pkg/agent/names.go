// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"log/slog"
	"time"

	"diagon.dev/diagon/pkg/collector"
	"diagon.dev/diagon/pkg/subject"
	"diagon.dev/diagon/pkg/symbol"
)

// Names are the two stages that remember things about this host's processes. Several
// pipelines may share them.
type Names struct {
	Subjects *subject.Resolver
	Symbols  *symbol.Symbolizer

	quality *quality // counts what both achieved
}

// OpenNames makes both for the processes below proc, usually "/proc". What they cannot do
// they report to lost.
func OpenNames(proc string, lost collector.Lost, log *slog.Logger) (Names, error) {
	subjects, err := subject.New(subject.DefaultConfig(), proc, time.Now)
	if err != nil {
		return Names{}, err
	}
	roots := symbol.DefaultRoots()
	roots.Proc = proc
	symbols, err := symbol.New(symbol.DefaultConfig(), roots, lost, log)
	if err != nil {
		return Names{}, err
	}
	return Names{Subjects: subjects, Symbols: symbols, quality: new(quality)}, nil
}

// Close releases the files that were opened for names.
func (n Names) Close() error { return n.Symbols.Close() }
