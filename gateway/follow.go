package gateway

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"

	"vela/gateway/feed"
	"vela/gateway/server"
	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
)

// What may wait for one who follows signals as they come.
var (
	forSocket  = feed.Bounds{Signals: 1024, Bytes: 2 << 20}
	forSession = feed.Bounds{Signals: 256, Bytes: 2 << 20}
)

// userTypes is how the types of what a person does begin.
const userTypes = "user."

// rejected is why a signal is not taken, in words for who emitted it.
type rejected string

func (r rejected) Error() string       { return string(r) }
func (r rejected) Code() protocol.Code { return protocol.CodeInvalidMessage }

// Emit implements [server.Signals].
func (s *signals) Emit(session string, m protocol.SignalEmit) error {
	if !strings.HasPrefix(m.SignalType, userTypes) || m.SignalType == userTypes {
		return rejected("A client emits what a person does: user.click, user.move, user.zone, user.command, user.point, or another type that begins with user.")
	}
	told := signal.Raw{Type: m.SignalType, Source: sourceOf(session), CorrelationID: m.CorrelationID, Payload: m.Payload}
	r, err := signal.Intake{NewID: uuid.NewString}.Accept(told.Append(nil), time.Now().UnixMilli())
	if err == nil && r.CorrelationID != m.CorrelationID {
		return rejected("The correlationId of a signal has up to 256 characters.")
	}
	if err != nil {
		return rejected(strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + ".")
	}
	s.take(r)
	return nil
}

// Subscribe implements [server.Signals].
func (s *signals) Subscribe(wake func()) server.Subscription {
	return subscription{s.feed.Subscribe(forSocket, wake)}
}

type subscription struct{ *feed.Subscription }

func (s subscription) Add(m protocol.SignalSubscribe) error {
	return s.Subscription.Add(feed.Filter(m))
}

func (s subscription) Remove(m protocol.SignalUnsubscribe) error {
	return s.Subscription.Remove(feed.Filter(m))
}

func (s subscription) Next() (server.LoggedSignal, bool) {
	g, missed, ok := s.Subscription.Next()
	return server.LoggedSignal{Text: g.Text, Missed: missed}, ok
}

// followedBy is how a session follows sources; its own turns it never does.
func (s *signals) followedBy(id string) session.Follow {
	own := sourceOf(id)
	return func(ctx context.Context, sources []string) iter.Seq[session.Followed] {
		sub := s.feed.Subscribe(forSession, nil)
		// The session has seen to the bounds of what it asks for, which are within those of a filter.
		_ = sub.Add(feed.Filter{Types: []string{signal.ToolCall{}.SignalType(), signal.ToolResult{}.SignalType()}, Sources: sources})
		return func(yield func(session.Followed) bool) {
			defer sub.Close()
			for {
				g, _, err := sub.Wait(ctx)
				if err != nil {
					return
				}
				if g.Source == own {
					continue
				}
				payload, err := signal.DecodePayload(g.Type, g.Payload)
				if err != nil {
					continue // it was checked when it came; one that breaks the rules shows nothing
				}
				if !yield(session.Followed{Source: g.Name(), Payload: payload}) {
					return
				}
			}
		}
	}
}

// pipelineSource is the source of what comes out of the pipeline.
const pipelineSource = "pipeline"

// commanded shows what comes out of the pipeline to whoever follows signals, as a signal of type command.NAME. It goes round
// and nowhere else: neither into the log, which has what went in, nor into the pipeline again.
func (s *signals) commanded(name, correlation string, payload []byte) {
	if !s.feed.Followed() {
		return
	}
	r := signal.Raw{
		ID: uuid.NewString(), Type: "command." + name, Timestamp: time.Now().UnixMilli(), Source: pipelineSource,
		CorrelationID: correlation, Payload: payload,
	}
	if err := signal.Check(r); err != nil {
		s.log.Warn("a command is not valid as a signal, and not shown to who follows signals", "command", name, "error", err)
		return
	}
	s.feed.Offer(feed.Signal{Raw: r, Text: r.Append(nil)})
}
