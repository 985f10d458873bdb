package source

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics is what [Sources] count.
type Metrics struct {
	states  *prometheus.GaugeVec
	taken   *prometheus.CounterVec
	dropped *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	registered := promauto.With(r)
	return &Metrics{
		states: registered.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vela_sources", Help: "Sources of signals, by how they are.",
		}, []string{"state"}),
		taken: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_source_signals_total", Help: "Signals that came through sources, by the sources' protocol.",
		}, []string{"protocol"}),
		dropped: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_source_dropped_total", Help: "Messages of sources that were dropped because there were too many, by the sources' protocol.",
		}, []string{"protocol"}),
	}
}
