package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vela/session"
	"vela/turn/deterministic"
)

// samples is every sample that is not zero, as "name{labels} value"; of a histogram how many there were and their sum.
func samples(t *testing.T, r *prometheus.Registry) []string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch h := m.GetHistogram(); {
			case h.GetSampleCount() > 0:
				lines = append(lines, fmt.Sprintf("%s %d %.3f", name, h.GetSampleCount(), h.GetSampleSum()))
			case m.GetCounter().GetValue()+m.GetGauge().GetValue() > 0:
				lines = append(lines, fmt.Sprintf("%s %v", name, m.GetCounter().GetValue()+m.GetGauge().GetValue()))
			}
		}
	}
	return lines
}

func wantCounted(t *testing.T, r *prometheus.Registry, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := samples(t, r); !slices.Equal(got, want) {
		t.Errorf("counted\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// measured is a session of version 2 that counts.
func measured(cfg session.Config) (session.Config, *prometheus.Registry) {
	r := prometheus.NewRegistry()
	cfg.Metrics, cfg.Version, cfg.Token = session.NewMetrics(r), 2, "token"
	return cfg, r
}

func TestMetricsOfTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, r := measured(agentBacked(recognisesSlowly("hello", nil), engine(slowly)))
		c := connect(t, cfg)
		c.send(piece)
		time.Sleep(time.Second)
		c.send(commit)
		time.Sleep(time.Second) // completed: 200 ms for the transcript, 200 ms for the answer
		c.send(secretQuestion)
		time.Sleep(150 * time.Millisecond)
		c.send(secretQuestion) // talked over, before its end
		time.Sleep(50 * time.Millisecond)
		c.send(cancel) // before its first word
		c.send(trigger)
		wantCounted(t, r,
			"vela_events_total{} 32",
			"vela_first_text_seconds{} 3 0.200",
			"vela_gateway_seconds{} 3 0.000",
			"vela_stt_seconds{} 1 0.200",
			"vela_tokens_total{completion} 4",
			"vela_tokens_total{prompt} 30",
			"vela_turn_seconds{agent,cancelled} 1 0.050",
			"vela_turn_seconds{agent,completed} 1 0.400",
			"vela_turn_seconds{agent,interrupted} 1 0.150",
			"vela_turn_seconds{deterministic,completed} 1 0.000",
			"vela_turns_total{cancelled} 1",
			"vela_turns_total{completed} 2",
			"vela_turns_total{interrupted} 1",
		)
		c.session.Leave(c)
		synctest.Wait()
		seqs := uint64(0)
		for _, e := range c.shown {
			seqs = max(seqs, e.Seq)
		}
		if got := samples(t, r)[0]; got != fmt.Sprintf("vela_events_total{} %d", seqs) {
			t.Errorf("%s, and the last event has number %d", got, seqs)
		}
	})
}

func TestMetricsOfPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, r := measured(session.Config{Window: time.Minute})
		c := connect(t, cfg)
		second := &client{t: t, session: c.session}
		come := func(p session.Peer, h session.Hello) {
			if err := c.session.Join(t.Context(), p, h); err != nil {
				t.Fatal(err)
			}
		}
		come(second, session.Hello{Resume: true, After: 1}) // takes over
		c.session.Leave(c)                                  // it does not sit any more
		wantCounted(t, r, "vela_events_total{} 1", "vela_resumes_total{true} 1", "vela_takeovers_total{} 1")
		second.session.Leave(second)
		wantCounted(t, r, "vela_events_total{} 1", "vela_resumes_total{true} 1", "vela_sessions_alone{} 1", "vela_takeovers_total{} 1")
		come(second, session.Hello{Resume: true, After: 99})
		wantCounted(t, r, "vela_events_total{} 1", "vela_resumes_total{false} 1", "vela_resumes_total{true} 1", "vela_takeovers_total{} 1")
		second.session.Leave(second)
		<-c.ended // nobody comes back
		wantCounted(t, r, "vela_events_total{} 2", "vela_resumes_total{false} 1", "vela_resumes_total{true} 1", "vela_takeovers_total{} 1")
	})
}

// full is a store and a journal on a disk without room.
type full struct{ appends error }

var errFull = errors.New("no space left on device")

func (f full) Append(context.Context, uint64, []byte) error { return f.appends }
func (full) Save(context.Context, []byte) error             { return nil }
func (full) Delete(context.Context) error                   { return errFull }
func (full) Write([]byte) (int, error)                      { return 0, errFull }
func (full) Close() error                                   { return nil }

func TestMetricsOfWhatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, r := measured(session.Config{Store: full{errFull}, Journal: func() io.WriteCloser { return full{} }})
		c := connect2(t, cfg)
		c.session.Leave(c)
		wantCounted(t, r, "vela_errors_total{internal} 1", "vela_events_total{} 1", "vela_journal_failures_total{} 1",
			"vela_sessions_alone{} 1", "vela_store_failures_total{} 1")
	})
	synctest.Test(t, func(t *testing.T) {
		cfg, r := measured(session.Config{Store: full{}})
		c := connect2(t, cfg)
		c.cancel(nil) // the session ends, and cannot be deleted
		<-c.ended
		wantCounted(t, r, "vela_events_total{} 2", "vela_store_failures_total{} 1")
	})
}

// connect2 joins without looking at what is shown.
func connect2(t *testing.T, cfg session.Config) *client {
	c := start(t, cfg)
	c.join()
	synctest.Wait()
	return c
}

// A restored session waits alone, and what its former life emitted is not counted again.
func TestMetricsOfARestoredSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, r := measured(session.Config{Mock: deterministic.Engine{}})
		s, _, err := session.Restore(cfg, session.Stored{ID: sessionID, State: []byte(`{"turns":"deterministic"}`), Events: [][]byte{
			[]byte(`{"type":"session.state","payload":{"value":"idle"},"seq":7,"ts":1}`),
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.Run(ctx) }()
		wantCounted(t, r, "vela_sessions_alone{} 1")
		stop()
		<-ended
		wantCounted(t, r, "vela_events_total{} 1") // session.ended
	})
}
