package session

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/protocol/signal"
	"vela/turn"
)

// A session can also show what other agents do, those of the sources that its client follows: the same statuses and
// artifacts, made by the same functions (package ganglia), with the source's name in them. They are guests. Nothing of theirs
// moves the machine, is remembered, or keeps the session alive; and while the session's own agent answers, whose status line it
// is, of theirs the artifacts alone are shown.

// Followed is a tool call or a tool's result of a source that is followed.
type Followed struct {
	Source  string         // as it was asked for
	Payload signal.Payload // a [signal.ToolCall] or a [signal.ToolResult]
}

// Follow yields what comes from these sources from when it is called, until ctx is done. What the session is too slow for
// is lost. It is called from the session's goroutine, and must not wait; the sequence is read by another one, once.
type Follow func(ctx context.Context, sources []string) iter.Seq[Followed]

// The bounds of what is followed, and of what is shown of it.
const (
	maxFollowed  = 16  // sources
	maxSource    = 256 // bytes of a source's name
	guestsShown  = 20  // statuses and artifacts, in each
	guestsWindow = time.Second
)

// following is what a session knows of the sources that it follows.
type following struct {
	sources []string
	seen    chan Followed // nil while nothing is followed
	stop    context.CancelFunc

	calls []guest          // that have no result, oldest first; at most maxToolsKept
	last  map[string]shown // of each source
	since time.Time        // when the present window began
	count int              // what was shown in it
}

// shown is a source's last status.
type shown struct {
	action ganglia.Action
	at     time.Time
}

// guest is a source's tool call that has no result yet.
type guest struct {
	source string
	signal.ToolCall
}

// applyFollow says whom to follow.
func (t *settings) applyFollow(sources *[]string, cfg *Config) error {
	switch {
	case sources == nil:
		return nil
	case len(*sources) > 0 && cfg.Follow == nil:
		return unsupported("follow", "no sources for you. A token needs the right to follow signals")
	case !CanFollow(*sources):
		return unsupported("follow", FollowBounds)
	}
	t.terms.Follow = slices.Compact(slices.Sorted(slices.Values(*sources)))
	return nil
}

// FollowBounds says what [CanFollow] wants.
const FollowBounds = "up to 16 sources by their names, of 1 to 256 bytes, without a star at the end"

// CanFollow says whether a session could follow these sources, if they are there. Each has to be named: what the sources
// are that a star would stand for, nobody could bound.
func CanFollow(sources []string) bool {
	return len(sources) <= maxFollowed && !slices.ContainsFunc(sources, func(s string) bool {
		return s == "" || len(s) > maxSource || strings.HasSuffix(s, "*")
	})
}

// follow follows the sources that are in force now, if they were others before.
func (s *Session) follow(ctx context.Context) {
	f := &s.following
	sources := s.settings.terms.Follow
	if slices.Equal(f.sources, sources) {
		return
	}
	if f.stop != nil {
		f.stop()
	}
	*f = following{sources: sources, last: make(map[string]shown, len(sources))}
	if len(sources) == 0 || s.replayed != nil {
		return // what came in stands in the journal
	}
	ctx, f.stop = context.WithCancel(ctx)
	seen := make(chan Followed)
	f.seen = seen
	comes := s.cfg.Follow(ctx, sources)
	s.spawn(func() {
		for g := range comes {
			select {
			case seen <- g:
			case <-ctx.Done():
				return
			}
		}
	})
}

// see shows what a source's agent does.
func (s *Session) see(g Followed) {
	switch p := g.Payload.(type) {
	case signal.ToolCall:
		s.guestCalls(g.Source, p)
	case signal.ToolResult:
		s.guestResult(g.Source, p)
	}
}

func (s *Session) guestCalls(source string, call signal.ToolCall) {
	if s.isOwn(call.CallID) {
		return
	}
	f := &s.following
	call.Input = atMost(call.Input, maxToolShown)
	f.calls = append(f.calls, guest{source, call})
	f.calls = slices.Delete(f.calls, 0, max(0, len(f.calls)-maxToolsKept))
	st := ganglia.StatusOf(call, s.now.UnixMilli())
	st.Source = source
	if last := f.last[source]; s.answer != nil || st.Action == last.action && s.since(last.at) <= sameStatus || !s.roomForGuest() {
		return
	}
	f.last[source] = shown{st.Action, s.now}
	s.emit2(st)
}

// guestResult shows what came of a tool. A result whose call is not known shows nothing.
func (s *Session) guestResult(source string, result signal.ToolResult) {
	f := &s.following
	i := slices.IndexFunc(f.calls, func(g guest) bool {
		return g.source == source && g.CallID == result.CallID && (g.CallID != "" || g.ToolName == result.ToolName)
	})
	if i < 0 {
		return
	}
	call := f.calls[i].ToolCall
	f.calls = slices.Delete(f.calls, i, i+1)
	artifact, ok := ganglia.ArtifactOf(call, result)
	if !ok || !s.roomForGuest() {
		return
	}
	artifact.Source = source
	s.emit2(artifact)
}

// isOwn says whether a tool call is of the session's own turn, which a source may tell of as well: that of an agent which is
// both asked and watched.
func (s *Session) isOwn(callID string) bool {
	return callID != "" && s.answer != nil && slices.ContainsFunc(s.answer.tools, func(u turn.ToolUse) bool { return u.CallID == callID })
}

// disown forgets a source's call that is of the session's own turn.
func (s *Session) disown(callID string) {
	if callID != "" {
		s.following.calls = slices.DeleteFunc(s.following.calls, func(g guest) bool { return g.CallID == callID })
	}
}

// roomForGuest counts one more event of a source: so many a second fill neither the session's log nor a phone.
func (s *Session) roomForGuest() bool {
	f := &s.following
	if s.since(f.since) >= guestsWindow {
		f.since, f.count = s.now, 0
	}
	if f.count++; f.count <= guestsShown {
		return true
	}
	s.cfg.Metrics.guestDropped()
	return false
}

// Signaller is a [Peer] whose client may follow signals and emit them, by itself: what comes of it concerns that connection
// alone, and so is the peer's. Signal takes a signal.subscribe, a signal.unsubscribe or a signal.emit. It is called from
// the session's goroutine, in the order in which the messages came, and must not wait; its error is told to the client.
type Signaller interface {
	Peer
	Signal(protocol.Message) error
}

func (s *Session) signal(p Peer, m protocol.Message) error {
	if p, ok := p.(Signaller); ok {
		return p.Signal(m)
	}
	return errUnsupported
}
