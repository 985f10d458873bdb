package source

import "github.com/prometheus/client_golang/prometheus"

// Metrics is what [Sources] count.
type Metrics struct {
	states  *prometheus.GaugeVec
	taken   *prometheus.CounterVec
	dropped *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		states: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vela_sources", Help: "Sources of signals, by how they are.",
		}, []string{"state"}),
		taken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_source_signals_total", Help: "Signals that came through sources, by the sources' protocol.",
		}, []string{"protocol"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_source_dropped_total", Help: "Messages of sources that were dropped because there were too many, by the sources' protocol.",
		}, []string{"protocol"}),
	}
	r.MustRegister(m.states, m.taken, m.dropped)
	return m
}
