package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"vela/gateway/auth"
	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/protocol/signal"
	"vela/session"
)

// others is a [session.Follow] whose sources say what comes on the channel.
func others(comes chan session.Followed) session.Follow {
	return func(ctx context.Context, sources []string) iter.Seq[session.Followed] {
		return func(yield func(session.Followed) bool) {
			for {
				select {
				case g := <-comes:
					if slices.Contains(sources, g.Source) && !yield(g) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// calls is an RPC of somebody's, and what comes of it.
func (s *stage) calls(identity, method, payload string) (string, error) {
	m, err := readCall(method, []byte(payload))
	if err != nil {
		return "", err
	}
	c := &call{identity: identity, message: m, done: make(chan error, 1), answer: []byte("{}")}
	s.happens(c)
	if err := <-c.done; err != nil || c.finish == nil {
		return string(c.answer), err
	}
	answer, err := c.finish(s.ctx)
	return string(answer), err
}

// Who is in a room alone has another agent's work shown there, and not any more; everybody knows whose is.
func TestARoomFollowsSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		comes := make(chan session.Followed)
		h := open(t, Config{NoContent: true})
		h.follow = others(comes)
		s := h.join("kitchen")
		if _, err := s.calls("ann", "session.start", `{"follow":["local:claude-code"]}`); err != nil {
			t.Fatal(err)
		}
		comes <- session.Followed{Source: "local:claude-code", Payload: signal.ToolCall{ToolName: "Read", AgentID: "c", CallID: "1", Input: []byte(`{"file_path":"a.go"}`)}}
		comes <- session.Followed{Source: "local:claude-code", Payload: signal.ToolResult{ToolName: "Read", AgentID: "c", CallID: "1", Success: true, Output: []byte(`{"file":{"filePath":"a.go","content":"package a"}}`)}}
		comes <- session.Followed{Source: "local:midi", Payload: signal.ToolCall{ToolName: "Bash", AgentID: "m", CallID: "2", Input: []byte(`{}`)}}
		synctest.Wait()
		var shown []string
		for _, e := range s.events(t) {
			switch e := e.(type) {
			case ganglia.Status:
				shown = append(shown, fmt.Sprint(e.Source, " ", e.Action, " ", e.Detail))
			case ganglia.Artifact:
				shown = append(shown, fmt.Sprint(e.Source, " ", e.ArtifactType, " ", e.Content))
			}
		}
		if want := []string{"local:claude-code reading_file a.go", "local:claude-code code package a"}; !slices.Equal(shown, want) {
			t.Errorf("shown: %q", shown)
		}
		if _, err := s.calls("ann", "session.start", `{"follow":[]}`); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := strings.Join(s.was(), " "); got != `initializing listening/[] listening/["local:claude-code"] listening/[]` {
			t.Errorf("everybody knows: %s", got)
		}
	})
}

// Where the gateway asks who comes, only whom it let in with the right has any source followed; what its file names, everybody may.
func TestWhoMayHaveSourcesFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		h := open(t, Config{NoContent: true, Guarded: true, Follow: []string{"local:claude-code", "gone"}, Sources: func(context.Context) []Source {
			return []Source{{ID: "local:claude-code", Name: "Claude Code", Here: true}, {ID: "remote:1", Name: "lab"}}
		}})
		h.follow = others(make(chan session.Followed))
		for identity, pass := range map[string]*auth.Pass{
			"ann": i.pass(i.token(auth.Rights{Signals: []string{auth.FollowSignals}})),
			"bob": i.pass(i.token(auth.Rights{Signals: []string{auth.EmitSignals}})),
			"key": nil,
		} {
			if _, _, err := h.Token("kitchen", identity, "", "", nil, pass); err != nil {
				t.Fatal(err)
			}
		}
		s := h.join("kitchen")
		for _, identity := range []string{"bob", "key", "stranger"} {
			s.happens(came{identity: identity})
		}
		synctest.Wait()
		const all = `{"sources":[{"id":"gone","name":"gone"},{"id":"local:claude-code","name":"Claude Code","here":true},{"id":"remote:1","name":"lab"}]}`
		const named = `{"sources":[{"id":"gone","name":"gone"},{"id":"local:claude-code","name":"Claude Code","here":true}]}`
		for identity, c := range map[string]struct {
			any  error
			told string
		}{"ann": {nil, all}, "key": {nil, all}, "bob": {errNoFollow, named}, "stranger": {errNoFollow, named}} {
			if _, err := s.calls(identity, "session.start", `{"follow":["remote:1"]}`); !errors.Is(err, c.any) {
				t.Errorf("%s, any source: %v", identity, err)
			}
			for _, own := range []string{`["local:claude-code"]`, `[]`} {
				if _, err := s.calls(identity, "session.start", `{"follow":`+own+`}`); err != nil {
					t.Errorf("%s, %s: %v", identity, own, err)
				}
			}
			if told, err := s.calls(identity, "sources.get", ""); err != nil || told != c.told {
				t.Errorf("%s is told %s, %v", identity, told, err)
			}
		}
		if got := s.was()[1]; got != `listening/["gone","local:claude-code"]` {
			t.Errorf("it begins as %s", got)
		}
	})
}

// The answer fits what LiveKit carries, however many there are.
func TestSourcesAreBounded(t *testing.T) {
	many := func(context.Context) []Source {
		return slices.Repeat([]Source{{ID: "x", Name: strings.Repeat("n", 500)}}, 100)
	}
	r := &Room{cfg: &Config{Sources: many}}
	b, err := r.followable(true)(t.Context())
	var told struct{ Sources []Source }
	if err := errors.Join(err, json.Unmarshal(b, &told)); err != nil || len(b) > maxAnswer || len(told.Sources) < 20 {
		t.Errorf("%d sources in %d bytes, %v", len(told.Sources), len(b), err)
	}
	if b, err := (&Room{cfg: &Config{}}).followable(true)(t.Context()); err != nil || string(b) != `{"sources":[]}` {
		t.Errorf("%s, %v", b, err)
	}
}

// What is no name of a source is refused by the session, with its words.
func TestARoomFollowsNamesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{})
		h.follow = others(make(chan session.Followed))
		s := h.join("kitchen")
		_, err := s.calls("ann", "session.start", `{"follow":["*"]}`)
		if known, ok := errors.AsType[*callError](err); !ok || known.code != protocol.CodeUnsupported || !strings.Contains(known.words, session.FollowBounds) {
			t.Errorf("%v", err)
		}
	})
}
