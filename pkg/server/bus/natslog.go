// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// natsLog passes on what the embedded NATS has to say. Its notices are about
// itself and go to debug.
type natsLog struct {
	log  *slog.Logger
	last atomic.Value // string: the last error, for the sentence that says why it did not start
}

func (l *natsLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *natsLog) Debugf(format string, v ...any)  {}
func (l *natsLog) Tracef(format string, v ...any)  {}
func (l *natsLog) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *natsLog) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l *natsLog) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }

func (l *natsLog) say(level slog.Level, format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if level >= slog.LevelError {
		l.last.Store(text)
	}
	l.log.Log(context.Background(), level, "embedded NATS", "says", text)
}

func (l *natsLog) lastError() string {
	if s, ok := l.last.Load().(string); ok {
		return s
	}
	return "it gave no reason"
}
