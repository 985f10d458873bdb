package source

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nhooyr.io/websocket"
)

// clawServer lets those in who have the token, and says frames once it is asked for what tools do.
func clawServer(n *network, end websocket.StatusCode, frames ...string) http.HandlerFunc {
	return n.socket(func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		say(n.T, ctx, c, `{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}`)
		ask := func() (method, id, token string, scopes []string) {
			_, message, err := c.Read(ctx)
			var q struct {
				ID, Method string
				Params     struct {
					Scopes []string
					Auth   struct{ Token string }
				}
			}
			if err != nil || json.Unmarshal(message, &q) != nil {
				return
			}
			return q.Method, q.ID, q.Params.Auth.Token, q.Params.Scopes
		}
		method, id, token, scopes := ask()
		if method != "connect" || !slices.Equal(scopes, []string{"operator.read"}) {
			n.Errorf("it asks for %s with %v", method, scopes)
		}
		if token != "right" {
			say(n.T, ctx, c, `{"type":"res","id":"`+id+`","ok":false,"error":{"code":"INVALID_REQUEST","message":"10.0.0.1","details":{"code":"AUTH_TOKEN_MISMATCH"}}}`)
			_ = c.Close(websocket.StatusPolicyViolation, "")
			return
		}
		say(n.T, ctx, c, `{"type":"res","id":"`+id+`","ok":true,"payload":{"protocol":4,"auth":{"scopes":["operator.read"]},"policy":{"tickIntervalMs":30000}}}`)
		if method, _, _, _ = ask(); method != "sessions.subscribe" {
			n.Errorf("then it asks for %s", method)
		}
		say(n.T, ctx, c, frames...)
		if end != 0 {
			_ = c.Close(end, "")
		}
		listen(ctx, c)
	})
}

func TestOpenClawIsObserved(t *testing.T) {
	agent := func(stream, data string) string {
		return `{"type":"event","event":"agent","payload":{"runId":"r1","sessionKey":"agent:main:main","stream":"` + stream + `","data":` + data + `}}`
	}
	frames := []string{
		`{"type":"res","id":"subscribe","ok":true}`, agent("lifecycle", `{"phase":"start"}`), agent("assistant", `{"text":"hi","delta":"hi"}`),
		`{"type":"event","event":"chat","payload":{"runId":"r1","state":"delta","deltaText":"hi"}}`,
		agent("tool", `{"phase":"start","name":"read","toolCallId":"c1","args":{"path":"x"}}`), agent("tool", `{"phase":"result","name":"read","toolCallId":"c1","isError":false,"result":{"ok":1}}`),
		agent("lifecycle", `{"phase":"end"}`), `{"type":"event","event":"chat","payload":{"runId":"r1","state":"final"}}`, `{"type":"event","event":"tick","payload":{"ts":1}}`,
	}
	for name, x := range map[string]struct {
		url, key string
		end      websocket.StatusCode
		want     string
	}{
		"heard":                 {"ws://localhost:18789", "right", 0, "connected"},
		"by its page's address": {"http://localhost:18789/", "right", 0, "connected"},
		"ended":                 {"ws://localhost:18789", "right", websocket.StatusNormalClosure, "disconnected"},
		"restarted":             {"ws://localhost:18789", "right", websocket.StatusServiceRestart, "connecting OpenClaw does not answer. Whoever runs this gateway: is it running? `openclaw gateway status` tells. It is tried again."},
		"with a wrong token":    {"ws://localhost:18789", "wrong", 0, "error OpenClaw refused the token. Whoever runs this gateway: use the one that OpenClaw has as gateway.auth.token."},
		"without a token":       {"ws://localhost:18789", "", 0, "error OpenClaw wants its token. Set it as the key: it stands in OpenClaw's settings as gateway.auth.token."},
		"in the clear":          {"ws://openclaw.example.org", "right", 0, "error OpenClaw's address has to be ws://, of this machine, or wss://, without anything but a host and a path: its token goes over it."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve("localhost:18789", clawServer(n, x.end, frames...))
				w, id := n.added(x.url, x.key)
				if got := w.after(500*time.Millisecond, id); got != x.want {
					t.Errorf("it is %q, want %q", got, x.want)
				}
				var types []string
				for _, r := range w.taken[id] {
					types = append(types, r.Type)
					if r.Type != "event" && r.CorrelationID != "r1" {
						t.Errorf("%s has the correlation id %q", r.Type, r.CorrelationID)
					}
				}
				if strings.HasPrefix(x.want, "error") {
					if len(types) != 0 {
						t.Errorf("it said %q", types)
					}
					return
				}
				if want := []string{"agent_state_change", "text_delta", "tool_call", "tool_result", "completion", "event"}; !slices.Equal(types, want) {
					t.Errorf("it said %q, want %q", types, want)
				}
			})
		})
	}
}
