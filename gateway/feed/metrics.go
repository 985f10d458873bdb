package feed

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts who follows. A nil one counts nothing.
type Metrics struct {
	now    prometheus.Gauge
	missed prometheus.Counter
}

// NewMetrics registers the feed's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		now: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vela_signal_subscribers", Help: "Who follows signals as they come: sockets, sessions that show what other agents do, and the webhook.",
		}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vela_signals_missed_total", Help: "Signals that a subscriber lost because it was too slow, each counted for each who lost it.",
		}),
	}
	r.MustRegister(m.now, m.missed)
	return m
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
