package session_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/protocol/signal"
	"vela/session"
	"vela/turn"
)

// others are the sources that sessions may follow.
type others struct {
	mu   sync.Mutex
	ends []*otherEnd
	live atomic.Int32 // sequences that somebody ranges over
}

// otherEnd is one session's.
type otherEnd struct {
	ctx     context.Context
	sources []string
	comes   chan session.Followed
}

// follow is a [session.Follow].
func (o *others) follow(ctx context.Context, sources []string) iter.Seq[session.Followed] {
	e := &otherEnd{ctx, slices.Clone(sources), make(chan session.Followed, 1024)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ends = append(o.ends, e)
	return func(yield func(session.Followed) bool) {
		o.live.Add(1)
		defer o.live.Add(-1)
		for {
			select {
			case g := <-e.comes:
				if !yield(g) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// says has a source say something, and returns how many hear it.
func (o *others) says(source string, p signal.Payload) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, e := range o.ends {
		if e.ctx.Err() == nil && slices.Contains(e.sources, source) {
			e.comes <- session.Followed{Source: source, Payload: p}
			n++
		}
	}
	return n
}

func guestCall(id, tool, input string) signal.ToolCall {
	return signal.ToolCall{ToolName: tool, AgentID: "other", CallID: id, Input: []byte(input)}
}

func guestResult(id, tool, output string) signal.ToolResult {
	return signal.ToolResult{ToolName: tool, AgentID: "other", CallID: id, Success: true, Output: []byte(output)}
}

func following(sources ...string) protocol.SessionStart {
	return protocol.SessionStart{Follow: &sources}
}

// watching is a session of version 2 that follows what o says of "local:x".
func watching(t *testing.T, o *others, cfg session.Config) *client {
	t.Helper()
	cfg.Follow = o.follow
	c := connect(t, version2(cfg))
	c.send(following("local:x"))
	c.expect("ready", "idle")
	return c
}

// What is shown is bounded, whatever sources do: in a second, in calls without a result, and in what a call holds.
func TestGuestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o others
		r := prometheus.NewRegistry()
		c := watching(t, &o, session.Config{Metrics: session.NewMetrics(r)})
		for i := range 100 { // another action than was shown last, or one that is held back as the same
			o.says("local:x", guestCall(fmt.Sprint(i), []string{"Read", "Bash"}[i%2], `{}`))
		}
		if n := len(c.next()); n != 20 {
			t.Errorf("%d statuses in one second", n)
		}
		if got := samples(t, r); !slices.Contains(got, "vela_followed_dropped_total{} 40") {
			t.Errorf("counted: %q", got)
		}
		time.Sleep(time.Second)
		o.says("local:x", guestResult("20", "Read", `{"path":"a.go","content":"x"}`)) // call 20 is of those that are forgotten
		c.expect()
		o.says("local:x", signal.ToolResult{ToolName: "Bash", CallID: "99", Success: false})
		c.expect("artifact")
		o.says("local:x", guestCall("long", "Edit", `{"file_path":"a","old_string":"`+strings.Repeat("x", 100<<10)+`","new_string":"y"}`))
		o.says("local:x", guestResult("long", "Edit", `{}`))
		c.expect("status")
	})
}

// Nothing that others do keeps a session alive or moves it, and what is followed ends with the session: no goroutine stays.
func TestGuestsKeepNobodyAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o others
		c := watching(t, &o, session.Config{Idle: time.Minute})
		for range 10 { // each ends what was followed before
			c.send(following("local:y", "local:x"), following("local:x"))
		}
		c.next()
		if n := o.live.Load(); n != 1 {
			t.Errorf("%d are followed at once", n)
		}
		for range 50 {
			time.Sleep(time.Second)
			o.says("local:x", guestCall("", "Read", `{}`))
		}
		if got := c.next(); len(got) != 50 || got[0] != "status" {
			t.Errorf("shown: %q", got)
		}
		time.Sleep(time.Minute)
		o.says("local:x", guestCall("", "Read", `{}`))
		synctest.Wait()
		if got := c.next(); !slices.Contains(got, "session.ended") || o.says("local:x", guestCall("", "Read", `{}`)) != 0 {
			t.Errorf("the session goes on: %q", got)
		}
		if n := o.live.Load(); n != 0 {
			t.Errorf("%d are still followed", n)
		}
	})
}

// An agent that is both asked and watched is shown once, whichever way is quicker.
func TestTheOwnTurnIsNotShownTwice(t *testing.T) {
	for name, watchedFirst := range map[string]bool{"asked first": false, "watched first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o others
				c := watching(t, &o, agentBacked(nil, engine(func(ctx context.Context, _ turn.Request, yield yieldSignal) {
					if watchedFirst {
						o.says("local:x", guestCall("k1", "Read", `{"path":"a.go"}`))
						_ = sleep(ctx, time.Millisecond)
					}
					yield(guestCall("k1", "Read", `{"path":"a.go"}`), nil)
					_ = sleep(ctx, time.Millisecond)
					o.says("local:x", guestCall("k1", "Read", `{"path":"a.go"}`))
					o.says("local:x", guestResult("k1", "Read", `{"path":"a.go","content":"x"}`))
					_ = sleep(ctx, time.Millisecond)
					yield(guestResult("k1", "Read", `{"path":"a.go","content":"x"}`), nil)
					yield(done, nil)
				})))
				c.send(protocol.InputTextSubmit{Text: "look"})
				time.Sleep(time.Second)
				got := c.next()
				for _, what := range []string{"status", "artifact"} {
					if n := strings.Count(strings.Join(got, " "), what); n != 1 {
						t.Errorf("%d of %s in %q", n, what, got)
					}
				}
			})
		})
	}
}

// What was followed stands in the journal, and replays to the same events.
func TestWhatWasFollowedReplays(t *testing.T) {
	shown := 0
	for seed := range uint64(40) {
		var o others
		cfg := agentBacked(nil, engines2["looks and changes"])
		cfg.Follow = o.follow
		journal := record(t, cfg, func(c *client) {
			rng := rand.New(rand.NewPCG(seed, 5))
			c.send(following("local:x", "session:other"))
			for i := range 60 {
				id := fmt.Sprint(rng.IntN(6))
				source := []string{"local:x", "session:other", "nobody"}[rng.IntN(3)]
				tool := []string{"Read", "Bash", "grep", "<tool>"}[rng.IntN(4)]
				switch rng.IntN(8) {
				case 0:
					c.send(protocol.InputTextSubmit{Text: "look"})
				case 1:
					c.send(protocol.ResponseCancel{})
				case 2:
					time.Sleep(time.Duration(rng.IntN(700)) * time.Millisecond)
				case 3:
					if i%9 == 0 {
						c.send(protocol.ResponseCancel{}, following("local:x"))
					}
				case 4, 5:
					o.says(source, guestCall(id, tool, `{"path":"<a>.go","pattern":"b & c"}`))
				default:
					o.says(source, guestResult(id, tool, `{"content":"a.go:3:x < y","path":"a.go"}`))
				}
			}
		})
		if r := replayed(t, journal); r.Different != nil {
			t.Fatalf("session %d: %+v", seed, *r.Different)
		}
		for line := range strings.Lines(string(journal)) {
			if strings.HasPrefix(line, `{"event":`) && strings.Contains(line, `"source":"`) {
				shown++
			}
		}
	}
	if shown < 100 {
		t.Errorf("only %d were shown", shown)
	}
}

// After a restart a session follows what it followed, if its client may; one that could not then cannot now.
func TestARestartFollowsAgain(t *testing.T) {
	for _, may := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var o others
			var m memory
			cfg := m.config()
			if may {
				cfg.Follow, cfg.Emits = o.follow, true
			}
			c := start(t, cfg)
			c.join()
			c.send(following("local:x"), typed("one"))
			c.next()
			c.cancel(session.ErrShutdown)
			<-c.ended

			again := m.restoreAs(t, 0, func(cfg *session.Config) { cfg.Follow, cfg.Emits = o.follow, true })
			again.next()
			ready, _ := again.shown[0].Message.(protocol.SessionReady)
			heard := o.says("local:x", guestCall("c", "Read", `{}`))
			if may != slices.Equal(ready.Follow, []string{"local:x"}) || may != slices.Contains(ready.Features, "signals") ||
				may != slices.Contains(ready.Features, "emit") || may != (heard == 1) {
				t.Errorf("may follow: %t; it follows %q with %q, and %d hear", may, ready.Follow, ready.Features, heard)
			}
		})
	}
}

// A room shows what is followed like any peer, and so does who resumes.
func TestEveryPeerIsShownGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o others
		c := watching(t, &o, session.Config{})
		room := &client{t: t, session: c.session}
		if err := c.session.Join(t.Context(), room, session.Hello{Seat: session.Room}); err != nil {
			t.Fatal(err)
		}
		room.next()
		o.says("local:x", guestCall("c1", "Bash", `{"command":"make"}`))
		o.says("local:x", signal.ToolResult{ToolName: "Bash", CallID: "c1", Success: false, Output: []byte(`{"error":"no"}`)})
		c.expect("status", "artifact")
		room.expect("status", "artifact")
		status := room.shown[len(room.shown)-2].Message.(ganglia.Status)
		if status.Source != "local:x" || status.Detail != "make" || status.Action != ganglia.ExecutingCommand {
			t.Errorf("%+v", status)
		}
		late := &client{t: t, session: c.session}
		if err := c.session.Join(t.Context(), late, session.Hello{Resume: true, After: 1}); err != nil {
			t.Fatal(err)
		}
		late.expect("ready", "status", "artifact")
	})
}
