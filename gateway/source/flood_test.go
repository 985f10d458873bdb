package source

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol/signal"
)

// hose is a [Feed] that never stops.
type hose struct {
	message []byte
	said    *int
}

func (h hose) Next(ctx context.Context) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	*h.said++
	return h.message, nil
}

func (h hose) Parse([]byte) []signal.Raw { return new(device).Parse([]byte("flood")) }

func (h hose) Close() error { return nil }

// What is too much is dropped, and said; reading pauses, so that the flood costs no more than that; and nobody else
// notices.
func TestAFloodIsDammed(t *testing.T) {
	for size, x := range map[int]struct{ passes, read int }{10: {12_000, 120_000}, 1 << 20: {96, 500}} { // in ten seconds
		synctest.Test(t, func(t *testing.T) {
			quiet, said := newDevice(), 0
			cfg := withDevices(map[string]*device{one: quiet, two: nil})
			open := cfg.MIDI
			cfg.MIDI = func(ctx context.Context, address string) (Feed, error) {
				if strings.HasSuffix(address, two) {
					return hose{make([]byte, size), &said}, nil
				}
				return open(ctx, address)
			}
			w := newWorks(t, cfg)
			synctest.Wait()
			w.must(w.Connect(t.Context(), one))
			w.must(w.Connect(t.Context(), two))
			for i := range 10 {
				time.Sleep(time.Second)
				quiet.says <- fmt.Sprint(i)
			}
			synctest.Wait()
			if got := w.count(one); got != 10 {
				t.Errorf("of the quiet one there are %d signals", got)
			}
			if got := w.count(two); got < x.passes*9/10 || got > x.passes*11/10 || said > x.read*11/10 {
				t.Errorf("of messages of %d bytes %d were read, and %d passed; want about %d and %d", size, said, got, x.read, x.passes)
			}
			s := w.source(two)
			if want := fmt.Sprintf("It sends more than 1000 signals or 8 MiB a second; %d were dropped.", said-w.count(two)); s.State != Connected || s.Error != want {
				t.Errorf("it is %s %q, want %q", s.State, s.Error, want)
			}
			if s.EventsPerSecond < x.passes/20 || s.EventsPerSecond > 2*x.passes/10 {
				t.Errorf("%d events per second", s.EventsPerSecond)
			}
			if s := w.source(one); s.Error != "" || s.State != Connected {
				t.Errorf("the quiet one is %s %q", s.State, s.Error)
			}
		})
	}
}

// A source that speaks up itself is dammed, too.
func TestAFloodOfHooksIsDammed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorks(t, withClaude(&hooks{}))
		synctest.Wait()
		w.must(w.Connect(t.Context(), ClaudeCodeID))
		synctest.Wait()
		for range 3 * maxSignals {
			if err := w.Heard(ClaudeCodeID, aSignal); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.count(ClaudeCodeID); got != 2*maxSignals {
			t.Errorf("%d signals were taken", got)
		}
	})
}
