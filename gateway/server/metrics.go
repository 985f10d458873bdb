package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"vela/protocol"
)

type metrics struct {
	sessions prometheus.Gauge
	received prometheus.Counter
	closes   *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	registered := promauto.With(r)
	return &metrics{
		sessions: registered.NewGauge(prometheus.GaugeOpts{
			Name: "vela_sessions", Help: "Sessions that run now.",
		}),
		received: registered.NewCounter(prometheus.CounterOpts{
			Name: "vela_messages_received_total", Help: "Messages that clients sent, good and bad.",
		}),
		closes: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_sockets_closed_total", Help: "Sockets that ended, by the close code that the gateway sent; 0 when it sent none.",
		}, []string{"code"}),
		refused: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_callers_refused_total", Help: "Requests without a good token or key, by what was wrong.",
		}, []string{"reason"}),
	}
}

func (m *metrics) closed(code protocol.CloseCode) {
	m.closes.WithLabelValues(strconv.Itoa(int(code))).Inc()
}
