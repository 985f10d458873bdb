package session

import (
	"time"

	"vela/protocol/ganglia"
	"vela/protocol/signal"
)

// What a person sees an agent do: a status while it works, an artifact of what came of it. Both are functions of the
// tool call and its result (package ganglia), so they are the same for every engine.

const (
	// sameStatus is how long a status of the same action is held back. It is done here, before the event is numbered,
	// so that every peer is shown the same.
	sameStatus = 500 * time.Millisecond
	// ponderEvery is how long an agent may be silent before the next sign of life.
	ponderEvery = 3 * time.Second
)

// working is what a running answer shows of itself.
type working struct {
	action  ganglia.Action // of the last status
	shown   time.Time      // when that was
	phrases []string       // for when the agent is silent
	said    int            // how many of them have been shown
	due     time.Time      // when the next sign of life is; zero while the agent speaks, and where it shows none
	calls   []running      // that have no result, oldest first; at most maxToolsKept
}

// running is a tool call that has no result yet.
type running struct {
	signal.ToolCall
	since time.Time
}

func (r running) status() ganglia.Status { return ganglia.StatusOf(r.ToolCall, r.since.UnixMilli()) }

// status shows what the agent does, unless it has just been shown.
func (s *Session) status(st ganglia.Status) {
	w := &s.answer.working
	if s.cfg.Version < 2 || st.Action == w.action && s.since(w.shown) <= sameStatus {
		return
	}
	w.action, w.shown = st.Action, s.now
	s.emit(st)
}

// silence begins: the agent has been asked, or goes on after a tool.
func (s *Session) silence(first time.Duration) {
	if w := &s.answer.working; len(w.phrases) > 0 && s.cfg.Version >= 2 {
		w.due = s.now.Add(first)
		s.wake()
	}
}

// silentLimit is how long the agent may be silent now.
func (s *Session) silentLimit() time.Duration {
	if len(s.answer.working.calls) > 0 {
		return s.cfg.ToolSilent
	}
	return s.cfg.AgentSilent
}

// ponder shows a sign of life when it is due: the tool that still runs, or a phrase. While a person is asked, they know.
func (s *Session) ponder() {
	a := s.answer
	if a == nil || a.working.due.IsZero() || a.working.due.After(s.now) {
		return
	}
	w := &a.working
	w.due = s.now.Add(ponderEvery)
	switch {
	case len(a.open) > 0:
	case len(w.calls) > 0:
		s.status(w.calls[len(w.calls)-1].status())
	default:
		phrase := w.phrases[w.said%len(w.phrases)]
		w.said++
		s.status(ganglia.Status{Action: ganglia.Thinking, Detail: phrase, StartedAt: s.now.UnixMilli()})
	}
}

// begun shows that a tool runs.
func (s *Session) begun(call signal.ToolCall) {
	w := &s.answer.working
	w.calls = append(w.calls, running{call, s.now})
	w.calls = w.calls[max(0, len(w.calls)-maxToolsKept):]
	s.status(w.calls[len(w.calls)-1].status())
	s.silence(ponderEvery)
}

// ended shows what came of a tool. A result whose call is not known shows nothing.
func (s *Session) ended(result signal.ToolResult) {
	w := &s.answer.working
	for i, call := range w.calls {
		if call.CallID != result.CallID || call.CallID == "" && call.ToolName != result.ToolName {
			continue
		}
		w.calls = append(w.calls[:i:i], w.calls[i+1:]...)
		if artifact, ok := ganglia.ArtifactOf(call.ToolCall, result); ok && s.cfg.Version >= 2 {
			artifact.SegmentID = s.answer.id
			s.emit(artifact)
		}
		break
	}
	s.silence(ponderEvery)
}
