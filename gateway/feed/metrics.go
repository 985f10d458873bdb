package feed

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts who follows. A nil one counts nothing.
type Metrics struct {
	now    prometheus.Gauge
	missed prometheus.Counter
}

// NewMetrics registers the feed's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	registered := promauto.With(r)
	return &Metrics{
		now: registered.NewGauge(prometheus.GaugeOpts{
			Name: "vela_signal_subscribers", Help: "Who follows signals as they come: sockets, sessions that show what other agents do, and the webhook.",
		}),
		missed: registered.NewCounter(prometheus.CounterOpts{
			Name: "vela_signals_missed_total", Help: "Signals that a subscriber lost because it was too slow, each counted for each who lost it.",
		}),
	}
}

func (m *Metrics) subscribers(n int) {
	if m != nil {
		m.now.Set(float64(n))
	}
}

func (m *Metrics) miss() {
	if m != nil {
		m.missed.Inc()
	}
}
