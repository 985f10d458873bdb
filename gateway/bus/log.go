package bus

import (
	"fmt"
	"log/slog"
)

// serverLog hands what the embedded server writes to slog. Its notices are of use to whoever debugs it alone.
type serverLog struct {
	log     *slog.Logger
	trouble func() // on every error
}

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats-server", "text", fmt.Sprintf(format, v...))
}
func (l *serverLog) Debugf(format string, v ...any) {
	l.log.Debug("nats-server", "text", fmt.Sprintf(format, v...))
}
func (l *serverLog) Tracef(format string, v ...any) {
	l.log.Debug("nats-server", "text", fmt.Sprintf(format, v...))
}
func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats-server", "text", fmt.Sprintf(format, v...))
}
func (l *serverLog) Fatalf(format string, v ...any) { l.Errorf(format, v...) }
func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats-server", "text", fmt.Sprintf(format, v...))
	l.trouble()
}
