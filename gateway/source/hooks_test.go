package source

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol/signal"
)

var aSignal = signal.Raw{ID: "1", Type: "x", Timestamp: 1, Source: "adapter:tap", Payload: []byte("{}")}

// hooks are Claude Code's, and fail as they are told to.
type hooks struct {
	installs, removes   int
	installing, leaving error
}

func (h *hooks) Install(context.Context) error { h.installs++; return h.installing }
func (h *hooks) Remove(context.Context) error  { h.removes++; return h.leaving }

func withClaude(h *hooks) Config {
	return Config{Hooks: h, Look: func(context.Context) []Found {
		return []Found{{ID: ClaudeCodeID, Label: "Claude Code", Protocol: SSE, URL: "/__signals__/stream", Available: true}}
	}}
}

func TestClaudeCodeSpeaksUpItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{}
		w := newWorks(t, withClaude(h))
		if got := w.after(time.Hour, ClaudeCodeID); got != "disconnected" || h.installs != 0 {
			t.Errorf("it is %q by itself, %d hooks", got, h.installs)
		}
		if err := w.Heard(ClaudeCodeID, aSignal); !errors.Is(err, ErrNotConnected) {
			t.Errorf("heard without being connected: %v", err)
		}
		if err := w.Heard("local:none", aSignal); !errors.Is(err, ErrUnknown) {
			t.Errorf("heard of nobody: %v", err)
		}
		w.must(w.Connect(t.Context(), ClaudeCodeID))
		if got := w.after(0, ClaudeCodeID); got != "connected" || h.installs != 1 {
			t.Errorf("connected, it is %q with %d hooks", got, h.installs)
		}
		if err := w.Heard(ClaudeCodeID, aSignal); err != nil || w.count(ClaudeCodeID) != 1 {
			t.Errorf("heard: %v, %d signals", err, w.count(ClaudeCodeID))
		}
		w.must(w.Disconnect(t.Context(), ClaudeCodeID))
		if h.removes != 1 {
			t.Error("the hooks are still there")
		}
		w.must(w.Connect(t.Context(), ClaudeCodeID))
		synctest.Wait()
		w.end()
		if h.removes != 2 {
			t.Error("the hooks are still there at the end")
		}
	})
}

func TestHooksThatCannotBe(t *testing.T) {
	for name, x := range map[string]struct {
		hooks hooks
		want  string
	}{
		"not written":                   {hooks{installing: errors.New("/home/me: read-only")}, "error The hooks could not be put into Claude Code's settings. May this gateway write them?"},
		"not written, and it says why":  {hooks{installing: fault{"The settings are no JSON.", false}}, "error The settings are no JSON."},
		"not taken out again":           {hooks{leaving: errors.New("/home/me: read-only")}, "disconnected The hooks could not be taken out of Claude Code's settings. Take them out yourself."},
		"written and taken out as well": {hooks{}, "disconnected"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorks(t, withClaude(&x.hooks))
				synctest.Wait()
				w.must(w.Connect(t.Context(), ClaudeCodeID))
				synctest.Wait()
				if x.hooks.installing == nil {
					w.must(w.Disconnect(t.Context(), ClaudeCodeID))
				}
				if got := w.after(time.Second, ClaudeCodeID); got != x.want || x.hooks.removes != 1 {
					t.Errorf("it is %q, want %q; hooks were taken out %d times", got, x.want, x.hooks.removes)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		cfg := withClaude(nil)
		cfg.Hooks = nil
		w := newWorks(t, cfg)
		synctest.Wait()
		w.must(w.Connect(t.Context(), ClaudeCodeID))
		if got := w.after(time.Second, ClaudeCodeID); !strings.HasPrefix(got, "error This gateway cannot") {
			t.Errorf("without hooks it is %q", got)
		}
	})
}
