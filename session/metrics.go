package session

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"vela/protocol"
)

// How a turn ends, in metrics and spans.
const (
	outcomeCompleted   = "completed"
	outcomeFailed      = "failed"
	outcomeCancelled   = "cancelled"
	outcomeInterrupted = "interrupted" // the user spoke or typed over the answer
	outcomeNothing     = "nothing"     // nothing was recognised, and nobody asked; in spans only
)

// outcomeOf tells an answer that was talked over from one that was cancelled.
func outcomeOf(outcome string, reason protocol.CancelReason) string {
	if reason == protocol.CancelBargeIn {
		return outcomeInterrupted
	}
	return outcome
}

// speechBuckets are fit for what people wait for in a conversation, in seconds.
var speechBuckets = []float64{.005, .01, .025, .05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 10, 30}

// Metrics counts what sessions do. One serves all of them. A nil one counts nothing.
type Metrics struct {
	turns           *prometheus.CounterVec
	errors          *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	stt             prometheus.Histogram
	firstText       prometheus.Histogram
	firstAudio      prometheus.Histogram
	gateway         prometheus.Histogram
	tokens          *prometheus.CounterVec
	alone           prometheus.Gauge
	resumes         *prometheus.CounterVec
	takeovers       prometheus.Counter
	events          prometheus.Counter
	journalFailures prometheus.Counter
	storeFailures   prometheus.Counter
	guestsDropped   prometheus.Counter
}

// NewMetrics registers the session's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	registered := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return registered.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	histogram := func(name, help string) prometheus.Histogram {
		return registered.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: speechBuckets})
	}
	m := &Metrics{
		turns: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_turns_total", Help: "Turns that were answered, by how the answer ended.",
		}, []string{"outcome"}),
		errors: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_errors_total", Help: "Error events sent to clients, by code.",
		}, []string{"code"}),
		duration: registered.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vela_turn_seconds", Help: "From the end of the user's turn to the end of the answer.", Buckets: speechBuckets,
		}, []string{"outcome", "kind"}),
		stt:        histogram("vela_stt_seconds", "From the end of speech to the final transcript."),
		firstText:  histogram("vela_first_text_seconds", "From the question, as final text, to the first text of the answer."),
		firstAudio: histogram("vela_first_audio_seconds", "From the question, as final text, to the first sound of the answer that was sent."),
		gateway:    histogram("vela_gateway_seconds", "What the gateway itself added on the way to the first text and the first sound: how long what was recognised, answered and spoken waited for its session."),
		tokens: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_tokens_total", Help: "Tokens that models counted, of what they were asked and of what they answered.",
		}, []string{"kind"}),
		alone: registered.NewGauge(prometheus.GaugeOpts{
			Name: "vela_sessions_alone", Help: "Sessions that run without a peer, waiting to be resumed.",
		}),
		resumes: registered.NewCounterVec(prometheus.CounterOpts{
			Name: "vela_resumes_total", Help: "Sessions taken up again, by whether all that was missed could be sent.",
		}, []string{"recovered"}),
		takeovers: counter("vela_takeovers_total", "Connections that lost their session to a newer one."),
		events: counter("vela_events_total",
			"Events that sessions emitted. Each session adds its own when a turn ends, when a peer comes or goes, and at its end."),
		journalFailures: counter("vela_journal_failures_total", "Journals that ended because they could not be written."),
		guestsDropped:   counter("vela_followed_dropped_total", "Statuses and artifacts of followed sources that were not shown, since there were more than 20 a second."),
		storeFailures:   counter("vela_store_failures_total", "Sessions that could not be kept any more, or not be deleted."),
	}
	for _, recovered := range []bool{true, false} {
		m.resumes.WithLabelValues(strconv.FormatBool(recovered)) // there from the start: a rate needs a zero
	}
	return m
}

// turnOver counts and traces the end of an answer; cause is why it failed, if it has.
func (s *Session) turnOver(a *answer, outcome string, cause error) {
	s.cfg.Metrics.turnEnded(a, outcome, s.now)
	s.countEvents()
	if outcome == outcomeFailed {
		s.trace.fail(cause, protocol.CodeAgentFailed)
	}
	s.trace.used(a.usage, a.times.added())
	s.trace.end(s.now, outcome)
	if a.hold != nil {
		s.trace = a.hold.trace // what the user says goes on
	}
}

// countRecognised counts and traces the final transcript.
func (s *Session) countRecognised() {
	if s.cfg.Metrics != nil {
		s.cfg.Metrics.stt.Observe(s.since(s.hearing.ended).Seconds())
	}
	s.speechTrace().endHalf(s.now)
}

// counted is what a session has added to the metrics that all share. Owned by Run.
type counted struct {
	events uint64 // the number of the last event that was
	alone  bool
}

// countAlone keeps the gauge of sessions without a peer.
func (s *Session) countAlone(alone bool) {
	s.countEvents()
	if m := s.cfg.Metrics; m != nil && alone != s.counted.alone {
		s.counted.alone = alone
		if alone {
			m.alone.Inc()
		} else {
			m.alone.Dec()
		}
	}
}

// countEvents adds what was emitted since. An event on its way costs nothing: its number is the count.
func (s *Session) countEvents() {
	if m := s.cfg.Metrics; m != nil {
		m.events.Add(float64(s.events.last - s.counted.events))
		s.counted.events = s.events.last
	}
}

// beginCounting is for a session that runs now: what a restored one emitted in its former life has been counted there.
func (s *Session) beginCounting() {
	s.counted.events = s.events.last
	s.countAlone(s.isAlone())
}

// kind is whose turn it was.
func (a *answer) kind() Turns {
	if a.mocked {
		return Deterministic
	}
	return Agent
}

func (m *Metrics) turnEnded(a *answer, outcome string, now time.Time) {
	if m == nil {
		return
	}
	t := a.times
	m.turns.WithLabelValues(outcome).Inc()
	m.duration.WithLabelValues(outcome, string(a.kind())).Observe(t.total(now).Seconds())
	if !t.first.IsZero() {
		m.firstText.Observe(t.first.Sub(t.asked).Seconds())
		m.gateway.Observe(t.added().Seconds())
	}
	if u := a.usage; u != nil {
		m.tokens.WithLabelValues("prompt").Add(float64(u.PromptTokens))
		m.tokens.WithLabelValues("completion").Add(float64(u.CompletionTokens))
	}
	if !t.sound.IsZero() {
		m.firstAudio.Observe(t.sound.Sub(t.asked).Seconds())
	}
}

func (m *Metrics) failed(code protocol.Code) {
	if m != nil {
		m.errors.WithLabelValues(string(code)).Inc()
	}
}

func (m *Metrics) resumed(recovered bool) {
	if m != nil {
		m.resumes.WithLabelValues(strconv.FormatBool(recovered)).Inc()
	}
}

func (m *Metrics) takenOver() {
	if m != nil {
		m.takeovers.Inc()
	}
}

func (m *Metrics) journalFailed() {
	if m != nil {
		m.journalFailures.Inc()
	}
}

func (m *Metrics) guestDropped() {
	if m != nil {
		m.guestsDropped.Inc()
	}
}

func (m *Metrics) storeFailed() {
	if m != nil {
		m.storeFailures.Inc()
	}
}
