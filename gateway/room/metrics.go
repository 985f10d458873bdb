package room

import (
	"time"

	"github.com/livekit/protocol/livekit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/protobuf/proto"
)

// Metrics counts what rooms do. One serves all of them. A nil one counts nothing.
type Metrics struct {
	rooms  prometheus.Gauge
	joins  *prometheus.CounterVec
	went   map[string]packetCounters // by what packets hold; not changed any more
	lost   prometheus.Counter
	talked prometheus.Counter
}

type packetCounters struct{ packets, bytes prometheus.Counter }

// The labels of what goes through a room.
const (
	audioIn  = "audio_in"
	audioOut = "audio_out"
	dataOut  = "data_out"
)

// NewMetrics registers the rooms' metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	registered := promauto.With(r)
	m := &Metrics{
		rooms: registered.NewGauge(prometheus.GaugeOpts{
			Name: "vela_rooms", Help: "LiveKit rooms in which the gateway is now.",
		}),
		joins: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_room_connections_total", Help: "Connections to LiveKit rooms, by why they ended.",
		}, []string{"end"}),
		lost: registered.NewCounter(prometheus.CounterOpts{
			Name: "vela_room_packets_lost_total", Help: "Packets of microphones that never came, or came too late.",
		}),
		talked: registered.NewCounter(prometheus.CounterOpts{
			Name: "vela_room_talked_over_seconds_total", Help: "Speech of participants while another one had the floor, in seconds.",
		}),
	}
	packets := registered.NewCounterVec(prometheus.CounterOpts{
		Name: "vela_room_packets_total", Help: "Packets from and to LiveKit rooms, by what they hold.",
	}, []string{"kind"})
	bytes := registered.NewCounterVec(prometheus.CounterOpts{
		Name: "vela_room_bytes_total", Help: "What these packets held, in bytes.",
	}, []string{"kind"})
	m.went = map[string]packetCounters{}
	for _, kind := range []string{audioIn, audioOut, dataOut} {
		m.went[kind] = packetCounters{packets.WithLabelValues(kind), bytes.WithLabelValues(kind)}
	}
	return m
}

func (m *Metrics) connected() {
	if m != nil {
		m.rooms.Inc()
	}
}

func (m *Metrics) disconnected(end string) {
	if m != nil {
		m.rooms.Dec()
		m.joins.WithLabelValues(end).Inc()
	}
}

func (m *Metrics) count(kind string, bytes int) {
	if m != nil {
		m.went[kind].packets.Inc()
		m.went[kind].bytes.Add(float64(bytes))
	}
}

func (m *Metrics) packetIn(bytes int) { m.count(audioIn, bytes) }

func (m *Metrics) frameOut(bytes int, err error) {
	if err == nil {
		m.count(audioOut, bytes)
	}
}

func (m *Metrics) sent(p *livekit.DataPacket) { m.count(dataOut, proto.Size(p)) }

func (m *Metrics) lostIn(n uint64) {
	if m != nil {
		m.lost.Add(float64(n))
	}
}

func (m *Metrics) talkedOver(d time.Duration) {
	if m != nil {
		m.talked.Add(d.Seconds())
	}
}
