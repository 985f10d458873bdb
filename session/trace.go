package session

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"vela/protocol"
)

// One span a turn, with a child for each half of it and one for its sound, and in the engine's a child for each tool call. Only the session's goroutine starts and ends them, at the times of
// its mailbox. Nothing that was said or answered is in a span, and of an error only its code.
const (
	spanTurn   = "vela.turn" // from the first audio, or what was typed, until the answer has ended
	spanStt    = "stt"       // from the first audio to the final transcript
	spanEngine = "engine"    // from the question to the end of the answer

	spanTTS = "tts" // from when a voice takes the first sentence to the end of the answer

	spanTool = "execute_tool" // and the tool's name: from a call to its result

	eventSpeechEnd  = "speech_end"  // in stt: the last of hands-free speech, before the silence that says so
	eventCommit     = "commit"      // in stt: the user has ended
	eventFirstText  = "first_text"  // in engine: the answer begins
	eventFirstAudio = "first_audio" // in tts: its sound does
)

// The attributes. Those that do not begin with vela are of OpenTelemetry's semantic conventions. Token usage stands in
// the turn alone, so that who adds up spans counts it once.
const (
	attrTurn         = attribute.Key("vela.turn.id")
	attrKind         = attribute.Key("vela.turn.kind")
	attrGateway      = attribute.Key("vela.turn.gateway_ms") // what the gateway itself added
	attrOutcome      = attribute.Key("vela.turn.outcome")
	attrSession      = attribute.Key("session.id")
	attrConversation = attribute.Key("gen_ai.conversation.id")
	attrOperation    = attribute.Key("gen_ai.operation.name")
	attrAgent        = attribute.Key("gen_ai.agent.name")
	attrInput        = attribute.Key("gen_ai.usage.input_tokens")
	attrOutput       = attribute.Key("gen_ai.usage.output_tokens")
	attrError        = attribute.Key("error.type")
	attrTool         = attribute.Key("gen_ai.tool.name")
	attrCall         = attribute.Key("gen_ai.tool.call.id")
)

// The operations' names in the conventions, and what a tool that failed is put down to.
const (
	invokeAgent = "invoke_agent"
	executeTool = "execute_tool"
	toolFailed  = "tool_failed"
)

// turnTrace is the spans of the present turn. Its zero value is none, and what is done to that does nothing.
type turnTrace struct {
	turn trace.Span
	half trace.Span // stt, then engine; nil between them
	tts  trace.Span // nil where nothing is spoken
	said bool       // the answer has begun
	code protocol.Code

	tools map[string]trace.Span // the calls that have no result, by their ids
}

// tracerOf is nil where spans would go nowhere.
func tracerOf(t trace.Tracer) trace.Tracer {
	if _, ok := t.(noop.Tracer); ok {
		return nil
	}
	return t
}

// traceHearing begins a turn that is spoken. The recogniser gets the context.
func (s *Session) traceHearing(ctx context.Context) context.Context {
	if s.cfg.Tracer == nil {
		return ctx
	}
	t := s.speechTrace()
	*t = s.beginTrace(ctx, Agent)
	return t.beginHalf(ctx, s.cfg.Tracer, s.now, spanStt)
}

// traceAnswer goes on with the turn that was heard, or begins one that was not. The engine gets the context.
func (s *Session) traceAnswer(ctx context.Context, a *answer) context.Context {
	if s.cfg.Tracer == nil {
		return ctx
	}
	if s.trace.turn == nil {
		s.trace = s.beginTrace(ctx, a.kind())
	}
	id := attrTurn.String(a.turn)
	s.trace.turn.SetAttributes(id)
	if a.mocked { // no agent is asked
		return s.trace.beginHalf(ctx, s.cfg.Tracer, s.now, spanEngine, id)
	}
	agent := []attribute.KeyValue{id, attrOperation.String(invokeAgent), attrAgent.String(s.settings.terms.Agent)}
	s.trace.turn.SetAttributes(agent...)
	return s.trace.beginHalf(ctx, s.cfg.Tracer, s.now, spanEngine, append(agent, attrConversation.String(s.cfg.ID))...)
}

// traceNoAgent is a turn that nobody can answer.
func (s *Session) traceNoAgent(ctx context.Context) {
	if s.cfg.Tracer == nil {
		return
	}
	if s.trace.turn == nil {
		s.trace = s.beginTrace(ctx, Agent)
	}
	s.trace.fail(errNoAgent, protocol.CodeAgentUnavailable)
	s.trace.end(s.now, outcomeFailed)
}

func (s *Session) beginTrace(ctx context.Context, kind Turns) turnTrace {
	_, span := s.cfg.Tracer.Start(ctx, spanTurn, trace.WithTimestamp(s.now), trace.WithSpanKind(trace.SpanKindServer), trace.WithLinks(s.links()...), trace.WithAttributes(
		attrSession.String(s.cfg.ID), attrConversation.String(s.cfg.ID), attrKind.String(string(kind)),
	))
	return turnTrace{turn: span}
}

// links are those to the peers that are spans themselves.
func (s *Session) links() (links []trace.Link) {
	for _, p := range s.seats {
		if t, ok := p.(Traced); ok && t.SpanContext().IsValid() {
			links = append(links, trace.Link{SpanContext: t.SpanContext()})
		}
	}
	return links
}

// beginHalf returns the context of what runs now.
func (t *turnTrace) beginHalf(ctx context.Context, tracer trace.Tracer, now time.Time, name string, attrs ...attribute.KeyValue) context.Context {
	ctx = trace.ContextWithSpan(ctx, t.turn)
	ctx, t.half = tracer.Start(ctx, name, trace.WithTimestamp(now), trace.WithAttributes(attrs...))
	return ctx
}

// committed notes that the user has ended: when the speech was over, and, where that took a while to be sure of, when it was.
func (t *turnTrace) committed(now, over time.Time) {
	if t.half != nil {
		if over.Before(now) {
			t.half.AddEvent(eventSpeechEnd, trace.WithTimestamp(over))
		}
		t.half.AddEvent(eventCommit, trace.WithTimestamp(now))
	}
}

// firstText notes that the answer begins; what follows of it is none.
func (t *turnTrace) firstText(now time.Time) {
	if t.half != nil && !t.said {
		t.said = true
		t.half.AddEvent(eventFirstText, trace.WithTimestamp(now))
	}
}

// traceVoice begins the sound of the answer; what follows of it is part of that.
func (s *Session) traceVoice() {
	t := &s.trace
	if t.turn == nil || t.tts != nil {
		return
	}
	ctx := trace.ContextWithSpan(context.Background(), t.turn)
	_, t.tts = s.cfg.Tracer.Start(ctx, spanTTS, trace.WithTimestamp(s.now), trace.WithAttributes(attrTurn.String(s.answer.turn)))
}

// firstAudio notes that it is to be heard from now on.
func (t *turnTrace) firstAudio(now time.Time) {
	if t.tts != nil {
		t.tts.AddEvent(eventFirstAudio, trace.WithTimestamp(now))
	}
}

// traceCall begins a tool call. What it is given is in no span.
func (s *Session) traceCall(id, name string) {
	t := &s.trace
	if t.half == nil || t.tools[id] != nil {
		return
	}
	if t.tools == nil {
		t.tools = map[string]trace.Span{}
	}
	ctx := trace.ContextWithSpan(context.Background(), t.half)
	_, t.tools[id] = s.cfg.Tracer.Start(ctx, spanTool+" "+name, trace.WithTimestamp(s.now), trace.WithAttributes(
		attrOperation.String(executeTool), attrTool.String(name), attrCall.String(id)))
}

// result ends a tool call.
func (t *turnTrace) result(now time.Time, id string, success bool) {
	span := t.tools[id]
	if span == nil {
		return
	}
	if !success {
		span.SetStatus(codes.Error, toolFailed)
		span.SetAttributes(attrError.String(toolFailed))
	}
	span.End(trace.WithTimestamp(now))
	delete(t.tools, id)
}

// endHalf ends what ran.
func (t *turnTrace) endHalf(now time.Time) {
	for _, span := range t.tools {
		span.End(trace.WithTimestamp(now))
	}
	clear(t.tools)
	if t.half != nil {
		t.half.End(trace.WithTimestamp(now))
		t.half = nil
	}
}

// fail notes why what runs has failed, and that the turn has: by code alone, since words may hold anything.
func (t *turnTrace) fail(err error, fallback protocol.Code) {
	if t.turn == nil {
		return
	}
	t.code = codeOf(err, fallback)
	if t.half != nil {
		broken(t.half, t.code)
	}
}

// deaf is a recogniser that failed. The turn goes on until its commit.
func (t *turnTrace) deaf(now time.Time, err error) {
	t.fail(err, protocol.CodeSpeechFailed)
	t.endHalf(now)
}

// unheard ends a turn that does not go on from being heard.
func (t *turnTrace) unheard(now time.Time, event string) {
	if event == evNothing {
		t.end(now, outcomeNothing)
	}
}

// end ends the turn. One that has failed before stays failed.
func (t *turnTrace) end(now time.Time, outcome string) {
	if t.turn == nil {
		return
	}
	t.endHalf(now)
	if t.tts != nil {
		t.tts.End(trace.WithTimestamp(now))
	}
	if t.code != "" {
		outcome = outcomeFailed
		broken(t.turn, t.code)
	}
	t.turn.SetAttributes(attrOutcome.String(outcome))
	t.turn.End(trace.WithTimestamp(now))
	*t = turnTrace{}
}

// used notes what the answer took, of tokens and of the gateway's own time.
func (t *turnTrace) used(u *protocol.Usage, gateway time.Duration) {
	if ms := gateway.Milliseconds(); t.turn != nil && ms > 0 {
		t.turn.SetAttributes(attrGateway.Int64(ms))
	}
	if t.turn != nil && u != nil {
		t.turn.SetAttributes(attrInput.Int64(int64(u.PromptTokens)), attrOutput.Int64(int64(u.CompletionTokens)))
	}
}

func broken(span trace.Span, code protocol.Code) {
	span.SetStatus(codes.Error, string(code))
	span.SetAttributes(attrError.String(string(code)))
}

// codeOf is the code under which a client is told of an error.
func codeOf(err error, fallback protocol.Code) protocol.Code {
	var known coded
	if errors.As(err, &known) {
		return known.Code()
	}
	return fallback
}
