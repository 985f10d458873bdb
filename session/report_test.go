package session_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"vela/session"
)

// What a client is told in neutral words is logged with its cause, under the session's id; what it is told as it is
// is not.
func TestCausesAreLoggedAndNotTold(t *testing.T) {
	for name, cfg := range map[string]session.Config{
		"engine fails":      agentBacked(hears("hello"), engines["fails"]),
		"engine panics":     agentBacked(hears("hello"), engines["panics"]),
		"recogniser fails":  agentBacked(recognisers["fails"], nil),
		"recogniser panics": agentBacked(recognisers["panics"], nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
				c := connect(t, cfg)
				c.send(piece, commit)
				synctest.Wait()
				c.frame("{") // refused, not logged
				c.session.Leave(c)
				<-c.ended
				for _, e := range c.shown {
					if told := fmt.Sprint(e.Message); strings.Contains(told, "10.0.0.1") || strings.Contains(told, "goroutine") {
						t.Errorf("the client was told %s", told)
					}
				}
				if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "10.0.0.1") || !strings.Contains(log.String(), sessionID) {
					t.Errorf("logged %d lines, want one with the session and the cause:\n%s", n, log.String())
				}
			})
		})
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		cfg := agentBacked(hears("hello"), engines["fails"])
		cfg.Metrics = session.NewMetrics(registry)
		c := connect(t, cfg)
		c.send(trigger)
		synctest.Wait()
		c.send(piece, commit)
		synctest.Wait()
		cfg.Agents = agents(engines["falls silent"])
		c = connect(t, cfg)
		for range 2 {
			c.send(piece, commit)
			synctest.Wait()
			c.send(trigger, cancel, cancel) // refused, cancelled, nothing to cancel
		}
		c.frame("{")
		c.send(piece, commit)
		synctest.Wait()
		c.session.Leave(c) // in the middle of the third answer
		<-c.ended
		want := []string{
			"vela_errors_total agent_failed 1", "vela_errors_total invalid_json 1", "vela_errors_total turn_in_flight 2",
			"vela_turns_total cancelled 3", "vela_turns_total completed 1", "vela_turns_total failed 1",
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range families {
			if !slices.Contains([]string{"vela_errors_total", "vela_turns_total"}, f.GetName()) {
				continue // trace_test.go looks at the others
			}
			for _, m := range f.GetMetric() {
				got = append(got, fmt.Sprintf("%s %s %v", f.GetName(), m.GetLabel()[0].GetValue(), m.GetCounter().GetValue()))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("counted\n  %q\nwant\n  %q", got, want)
		}
	})
}
