package bus

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what goes through the log of signals. A nil one counts nothing.
type Metrics struct {
	signals prometheus.Counter
	dropped prometheus.Counter
	readers prometheus.Gauge
}

// NewMetrics registers the log's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	registered := promauto.With(r)
	return &Metrics{
		signals: registered.NewCounter(prometheus.CounterOpts{
			Name: "vela_signals_total", Help: "Signals that the log took.",
		}),
		dropped: registered.NewCounter(prometheus.CounterOpts{
			Name: "vela_signals_dropped_total", Help: "Signals that the log could not take, since its store was full, away or too far behind.",
		}),
		readers: registered.NewGauge(prometheus.GaugeOpts{
			Name: "vela_signal_readers", Help: "Readers that follow the log now.",
		}),
	}
}

func (m *Metrics) took() {
	if m != nil {
		m.signals.Inc()
	}
}

func (m *Metrics) lost() {
	if m != nil {
		m.dropped.Inc()
	}
}

// reads counts a reader, until what it returns is called.
func (m *Metrics) reads() (left func()) {
	if m == nil {
		return func() {}
	}
	m.readers.Inc()
	return m.readers.Dec
}
