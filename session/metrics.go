package session

import (
	"github.com/prometheus/client_golang/prometheus"

	"vela/protocol"
)

// Metrics counts what sessions do. One serves all of them. A nil one counts nothing.
type Metrics struct {
	turns  *prometheus.CounterVec
	errors *prometheus.CounterVec
}

// NewMetrics registers the session's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_turns_total", Help: "Turns that were answered, by how the answer ended.",
		}, []string{"outcome"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_errors_total", Help: "Error events sent to clients, by code.",
		}, []string{"code"}),
	}
	r.MustRegister(m.turns, m.errors)
	return m
}

func (m *Metrics) turnEnded(outcome string) {
	if m != nil {
		m.turns.WithLabelValues(outcome).Inc()
	}
}

func (m *Metrics) failed(code protocol.Code) {
	if m != nil {
		m.errors.WithLabelValues(string(code)).Inc()
	}
}
