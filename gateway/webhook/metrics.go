package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what a webhook is told. A nil one counts nothing.
type Metrics struct {
	delivered, retried, failed, dropped prometheus.Counter
	waiting                             prometheus.Gauge
}

// NewMetrics registers the webhook's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	registered := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return registered.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Metrics{
		delivered: counter("vela_webhook_delivered_total", "Signals that the webhook took."),
		retried:   counter("vela_webhook_retries_total", "Requests to the webhook that failed."),
		failed:    counter("vela_webhook_failed_total", "Signals that the webhook did not take, and that were given up."),
		dropped:   counter("vela_webhook_dropped_total", "Signals that were not sent to the webhook, since too many waited or the gateway stopped."),
		waiting: registered.NewGauge(prometheus.GaugeOpts{
			Name: "vela_webhook_waiting", Help: "Signals that wait for the webhook, as of the last request.",
		}),
	}
}

func (m *Metrics) deliver() {
	if m != nil {
		m.delivered.Inc()
	}
}

func (m *Metrics) retry() {
	if m != nil {
		m.retried.Inc()
	}
}

func (m *Metrics) fail() {
	if m != nil {
		m.failed.Inc()
	}
}

func (m *Metrics) drop(n uint64) {
	if m != nil {
		m.dropped.Add(float64(n))
	}
}

func (m *Metrics) wait(n int) {
	if m != nil {
		m.waiting.Set(float64(n))
	}
}
