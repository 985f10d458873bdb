package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vela/gateway/bus"
	"vela/gateway/feed"
	"vela/protocol/signal"
)

// fiveFilters is one wire through a chain of every kind of filter, which lets each signal of the benchmark pass.
const fiveFilters = `{"choreographies":[{"id":"glow","on":"token_usage"}],
	"wires":[{"id":"w","fromZone":"signal-type","fromId":"token_usage","toZone":"choreographer","toId":"glow","filters":[
		{"type":"throttle","intervalMs":0},
		{"type":"sample","every":1},
		{"type":"delta","path":"completionTokens","threshold":1},
		{"type":"when","clause":{"agentId":{"equals":"main"},"promptTokens":{"gt":100}}},
		{"type":"map","mappings":[{"from":"completionTokens","to":"cost"}]}]}]}`

// usages are signals whose number moves from each to the next.
func usages() (all [1024][]byte) {
	for n := range all {
		all[n] = fmt.Appendf(nil, `{"id":"0b6fe5c4-6a3c-4f2e-9d0a-2f1f4f6f%04x","type":"token_usage","timestamp":1764000000000,`+
			`"source":"local:openclaw","correlationId":"run-%d","payload":{"agentId":"main","promptTokens":1200,"completionTokens":%d,"model":"gpt-5"}}`,
			n, n/100, n)
	}
	return all
}

// BenchmarkSignal is the way of one signal, from the bytes of its source through the log and a chain of five filters to
// who follows what comes out. The floor is decoding and encoding the same JSON.
func BenchmarkSignal(b *testing.B) {
	texts := usages()
	floor := 0.0
	b.Run("DecodeEncode", func(b *testing.B) {
		n := 0
		for b.Loop() {
			var r signal.Raw
			if err := json.Unmarshal(texts[n%len(texts)], &r); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(r); err != nil {
				b.Fatal(err)
			}
			n++
		}
		floor = float64(b.Elapsed()) / float64(n)
	})
	through := func(c bus.Config) func(*testing.B) {
		return func(b *testing.B) {
			s := wired(b, c, fiveFilters)
			commands, err := s.run.Commands(b.Context())
			if err == nil {
				err = s.run.Switch(b.Context(), true)
			}
			if err != nil {
				b.Fatal(err)
			}
			onTheWay := make(chan struct{}, 1000) // no more than those who take them bear
			go func() {
				for command, err := range commands {
					if err != nil {
						return
					}
					if bytes.HasPrefix(command, []byte(`{"command":"dispatch"`)) {
						<-onTheWay
					}
				}
			}()
			n, began := 0, time.Now()
			for b.Loop() {
				onTheWay <- struct{}{}
				if _, err := s.Accept(texts[n%len(texts)]); err != nil {
					b.Fatal(err)
				}
				n++
			}
			for range cap(onTheWay) { // until all have come out
				onTheWay <- struct{}{}
			}
			each := float64(time.Since(began)) / float64(n)
			b.ReportMetric(1e9/each, "signals/s")
			b.ReportMetric(each/floor, "times-floor")
			if lost := s.kept.Dropped(); lost > 0 {
				b.Errorf("the log could not take %d", lost)
			}
		}
	}
	b.Run("SourceToSubscriber", through(bus.Config{}))
	b.Run("SourceToSubscriberOnDisk", through(bus.Config{Dir: b.TempDir()}))
}

// wired is the way of signals with a wiring, as a gateway has it.
func wired(b *testing.B, c bus.Config, wiring string) *signals {
	b.Helper()
	file := filepath.Join(b.TempDir(), "wiring.json")
	if err := os.WriteFile(file, []byte(wiring), 0o600); err != nil {
		b.Fatal(err)
	}
	r, err := newRun(file, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	s := &signals{run: r, log: r.log, feed: feed.New(feed.NewMetrics(prometheus.NewRegistry()))}
	if r.bus, err = bus.Open(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	if err := s.open(b.Context(), r.bus); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); r.work(ctx) }()
	b.Cleanup(func() {
		stop()
		<-ended
		if err := r.bus.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}
