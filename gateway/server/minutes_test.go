package server_test

import (
	"context"
	"encoding/base64"
	"iter"
	"net/http"
	"testing"
	"time"

	"vela/gateway/auth"
	"vela/gateway/server"
	"vela/protocol"
	"vela/session"
	"vela/session/speech"
	"vela/turn/deterministic"
	"vela/turn/echo"
)

// ear hears a word in whatever was said.
type ear struct{}

func (ear) Transcribe(_ context.Context, audio iter.Seq[[]int16]) iter.Seq2[speech.Transcript, error] {
	return func(yield func(speech.Transcript, error) bool) {
		for range audio {
			if !yield(speech.Transcript{Text: "word"}, nil) {
				return
			}
		}
		yield(speech.Transcript{Text: "word", Final: true}, nil)
	}
}

func sound(d time.Duration) string {
	pcm := make([]byte, 2*int(d.Milliseconds())*speech.Rate/1000)
	return `{"type":"input_audio.append","payload":{"chunk":"` + base64.StdEncoding.EncodeToString(pcm) + `"}}`
}

// TestATokensMinutes: what a token allows to be said is taken from all of its sessions, and who resumes one with another token
// speaks on that.
func TestATokensMinutes(t *testing.T) {
	g := guard(t, func(c *server.Config) {
		c.NewSession = func(n server.NewSession) *session.Session {
			return session.New(session.Config{
				ID: "s", Version: n.Version, Token: n.Token, Turns: session.Agent, Allowance: n.Audio, Transcriber: ear{},
				Mock: deterministic.Engine{}, Agents: []session.NamedEngine{{Name: echo.AgentID, Engine: echo.Engine{}}},
			})
		}
	})
	open := func(token string) socket {
		t.Helper()
		c, _, err := g.dialAs(http.Header{"Authorization": {"Bearer " + token}, "Sec-Websocket-Protocol": {"vela.v2"}}, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		return socket{t, c, g.ctx}
	}
	// told is the next error, or what was recognised.
	told := func(s socket) string {
		t.Helper()
		for {
			switch m := s.envelope().Message.(type) {
			case protocol.Error:
				return string(m.Code)
			case protocol.TranscriptFinal:
				return m.Text
			}
		}
	}
	begin := `{"type":"session.start","payload":{"turns":"agent"}}`
	commit := `{"type":"input_audio.commit","payload":{}}`

	minute := g.token(auth.Rights{Minutes: 1, Sessions: 2})
	first := open(minute)
	ready := first.begin(begin)
	first.send(sound(20 * time.Second))
	first.send(sound(20 * time.Second))
	first.send(commit)
	if got := told(first); got != "word" {
		t.Fatalf("40 s: %s", got)
	}
	second := open(minute)
	second.begin(begin)
	second.send(sound(20 * time.Second))
	second.send(commit)
	if got := told(second); got != "word" {
		t.Fatalf("20 s more in another session: %s", got)
	}
	for over := false; !over; {
		m, ok := first.envelope().Message.(protocol.SessionState)
		over = ok && m.Value == protocol.Idle
	}
	first.send(sound(20 * time.Millisecond))
	if got := told(first); got != string(protocol.CodeAudioTooLong) {
		t.Errorf("beyond the minute: %s", got)
	}
	again := open(g.token(auth.Rights{Minutes: 1}))
	again.begin(resume(ready.ResumeToken, 1<<40)) // without what was missed
	again.send(`{"type":"input_audio.clear","payload":{}}`)
	again.send(sound(20 * time.Millisecond))
	again.send(commit)
	if got := told(again); got != "word" {
		t.Errorf("resumed with another token: %s", got)
	}
}
