package protocol

import (
	"encoding/json"
	"reflect"

	"vela/protocol/ganglia"
)

// State is the coarse phase of a session.
type State string

// The four phases. A turn is in flight in [Thinking] and [Speaking].
const (
	Idle      State = "idle"
	Listening State = "listening"
	Thinking  State = "thinking"
	Speaking  State = "speaking"
)

// States returns the four phases in the order in which a turn runs through them.
func States() []State { return []State{Idle, Listening, Thinking, Speaking} }

// What a client sends.
type (
	// SessionStart asks for session.ready and session.state again; it is harmless at any time. In version 2 it begins a
	// session, and may say how it is to be; in version 1 its fields are ignored.
	SessionStart struct {
		Turns         string            `json:"turns,omitempty" since:"2"`         // "deterministic" or "agent"
		Agent         string            `json:"agent,omitempty" since:"2"`         // which agent answers
		Audio         *AudioFormats     `json:"audio,omitempty" since:"2"`         // what is sent either way
		Voice         string            `json:"voice,omitempty" since:"2"`         // who speaks the answers, by its name in GET /api/engines
		TurnDetection string            `json:"turnDetection,omitempty" since:"2"` // "none" or "vad"
		VAD           *VAD              `json:"vad,omitempty" since:"2"`           // how "vad" tells speech; what is not there is the gateway's own
		Interrupt     *bool             `json:"interrupt,omitempty" since:"2"`     // speech ends an answer; true unless said otherwise
		Approvals     *bool             `json:"approvals,omitempty" since:"2"`     // this client answers questions about tools
		Room          string            `json:"room,omitempty" since:"2"`          // a LiveKit room that mirrors the session
		Follow        *[]string         `json:"follow,omitempty" since:"2"`        // sources whose tools are shown, up to 16; none ends that
		Language      string            `json:"language,omitempty" since:"2"`      // of the speech, as BCP 47 writes it
		Metadata      map[string]string `json:"metadata,omitempty" since:"2"`      // the client's own, for logs and agents
	}

	// SessionResume takes a session up again.
	SessionResume struct {
		Token string `json:"token"` // from session.ready
		After uint64 `json:"after"` // the last seq that was received
	}

	// MockedTurnTrigger asks for the one fixed turn, transcript included.
	MockedTurnTrigger struct{}

	// InputAudioAppend adds to the turn that the user is speaking.
	InputAudioAppend struct {
		// Chunk is an opaque string in a deterministic turn; in an agent-backed one it is base64 (RFC 4648 section 4)
		// of PCM16 little-endian, mono, 16 kHz: 640 bytes are 20 ms.
		Chunk string `json:"chunk"`
	}

	// InputAudioCommit ends what the user says and asks for the answer.
	InputAudioCommit struct{}

	// InputAudioClear forgets what was appended.
	InputAudioClear struct{}

	// InputTextSubmit is a typed turn.
	InputTextSubmit struct {
		Text string `json:"text"`
	}

	// ResponseCancel stops whatever is going on and brings the session back to idle.
	ResponseCancel struct {
		ResponseID string `json:"responseId,omitempty" since:"2"` // of one that is over: nothing happens
		PlayedMs   int64  `json:"playedMs,omitempty" since:"2"`   // how much of its audio was played, in ms
	}

	// PlaybackAck says how much of an answer's audio has been played.
	PlaybackAck struct {
		ResponseID string `json:"responseId"`
		PlayedMs   int64  `json:"playedMs"` // from the answer's beginning
	}

	// ApprovalAnswer is a yes or a no to a tool.
	ApprovalAnswer struct {
		ApprovalID string `json:"approvalId"` // from approval.request
		Allow      bool   `json:"allow"`
		Remember   bool   `json:"remember,omitempty"` // it goes for this tool of this agent for the rest of the session, and nobody is asked again
	}

	// SignalEmit sends one of the five user interaction signals back to the host.
	SignalEmit struct {
		SignalType    string          `json:"type"`
		Payload       json.RawMessage `json:"payload"`
		CorrelationID string          `json:"correlationId,omitempty"`
	}

	// SignalSubscribe follows the signal pipeline, with a filter more: signals of one of the types, from one of the
	// sources. A star at the end of either stands for anything; a list that is empty or not there takes all.
	SignalSubscribe struct {
		Types   []string `json:"types,omitempty"`   // up to 32, of up to 128 bytes
		Sources []string `json:"sources,omitempty"` // up to 32, of up to 256 bytes
	}

	// SignalUnsubscribe takes back the filter with the same lists; without any, all filters.
	SignalUnsubscribe struct {
		Types   []string `json:"types,omitempty"`
		Sources []string `json:"sources,omitempty"`
	}

	// HistoryGet asks for the conversation as the agent knows it.
	HistoryGet struct{}

	// HistoryClear begins a new conversation.
	HistoryClear struct{}

	// SessionClose ends the session for good.
	SessionClose struct{}
)

// AudioFormats is what is sent either way. In session.start, what is not there or null is left to the gateway.
type AudioFormats struct {
	Input  *Format `json:"input,omitempty"`
	Output *Format `json:"output,omitempty"`
}

// Format is how audio is written: as PCM16 little-endian, mono, or as Opus (RFC 6716), a packet a message.
type Format struct {
	Encoding string `json:"encoding"` // "pcm16" or "opus"
	Rate     int    `json:"rate"`     // Hz; of opus 8000, 12000, 16000, 24000 or 48000
	Framing  string `json:"framing"`  // "json" or "binary"
}

// VAD is how the gateway tells speech from everything else, and its end from a pause.
type VAD struct {
	Threshold float64 `json:"threshold,omitempty"` // how likely a sound must be speech, from 0.05 to 0.95
	SpeechMs  int     `json:"speechMs,omitempty"`  // how much speech it takes to be noticed, from 50 to 2000
	SilenceMs int     `json:"silenceMs,omitempty"` // how much silence ends it, from 100 to 5000
}

// What the gateway sends. Beside these, [ganglia.Status] and [ganglia.Artifact] are messages as they are.
type (
	// SessionReady says that the session exists, and its id, a UUID. In version 2 it says all that is in force.
	SessionReady struct {
		SessionID string `json:"sessionId"`
		*Terms    `since:"2"`
	}

	// SessionState says in which phase the session now is.
	SessionState struct {
		Value State `json:"value"`
	}

	// TranscriptPartial is what has been recognised so far; each one replaces the one before.
	TranscriptPartial struct {
		Text   string `json:"text"`
		ItemID string `json:"itemId,omitempty" since:"2"` // of what the user says, in version 2
	}

	// TranscriptFinal is what the user said, once a turn. Empty when nothing was recognised.
	TranscriptFinal struct {
		Text   string `json:"text"`
		ItemID string `json:"itemId,omitempty" since:"2"` // of what the user said, in version 2
	}

	// ResponseTextDelta is the next piece of the answer's text.
	ResponseTextDelta struct {
		Text       string `json:"text"`
		ResponseID string `json:"responseId,omitempty" since:"2"` // in version 2
	}

	// ResponseCompleted says that the answer is whole. A cancelled or failed one has none.
	ResponseCompleted struct {
		ResponseID string `json:"responseId,omitempty" since:"2"` // in version 2
		Usage      *Usage `json:"usage,omitempty" since:"2"`      // in version 2, where the agent says
		HeardText  string `json:"heardText,omitempty" since:"2"`  // in version 2: what of the answer was heard
	}

	// Error says what went wrong, in words for a person. The session goes on unless the socket is closed after it.
	Error struct {
		Code      Code   `json:"code"`
		Message   string `json:"message"`
		Retryable bool   `json:"retryable,omitempty"`     // the same message may succeed later
		Ref       string `json:"ref,omitempty" since:"2"` // in version 2: the id of the message that caused it
	}

	// ResponseCreated says that an answer begins. Each has one end: response.completed or response.cancelled.
	ResponseCreated struct {
		ResponseID string `json:"responseId"`
		TurnID     string `json:"turnId"`
	}

	// ResponseAudioDelta is the next piece of the answer's sound.
	ResponseAudioDelta struct {
		ResponseID string `json:"responseId"`
		Chunk      string `json:"chunk"`   // base64 in the format agreed
		StartMs    int64  `json:"startMs"` // its place in the answer
		Text       string `json:"text"`    // what it speaks
		// Filler says that it is of a phrase for a silence: sound of the answer, and no part of what it says.
		Filler bool `json:"filler,omitempty"`
	}

	// ResponseCancelled says that an answer ended before its end, and what of it was heard.
	ResponseCancelled struct {
		ResponseID string       `json:"responseId"`
		Reason     CancelReason `json:"reason"`
		HeardText  string       `json:"heardText"`
		PlayedMs   int64        `json:"playedMs"`
	}

	// ThinkingDelta is the next piece of the agent's reasoning.
	ThinkingDelta struct {
		Text string `json:"text"`
	}

	// ToolCall says that the agent calls a tool.
	ToolCall struct {
		CallID string          `json:"callId"` // its tool.result has the same
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"` // {} where it is over 96 KiB
	}

	// ToolResult says what a tool returned.
	ToolResult struct {
		CallID  string          `json:"callId"`
		Name    string          `json:"name"`
		Success bool            `json:"success"`
		Output  json.RawMessage `json:"output,omitempty"` // the tool's own; left out where there is none, or it is over 96 KiB
	}

	// ApprovalRequest asks whether a tool may run. No answer in time is a no.
	ApprovalRequest struct {
		ApprovalID string `json:"approvalId"`
		CallID     string `json:"callId"` // of the tool.call in question
		Name       string `json:"name"`
		Summary    string `json:"summary"`   // one line for a person
		Risk       string `json:"risk"`      // "low" or "high"
		ExpiresMs  int64  `json:"expiresMs"` // from now
	}

	// Signal is a signal's envelope. [SignalOf] makes it of one.
	Signal struct {
		ID            string          `json:"id"`
		SignalType    string          `json:"type"`
		Timestamp     int64           `json:"timestamp"`               // Unix ms
		Source        string          `json:"source"`                  // who produced it
		CorrelationID string          `json:"correlationId,omitempty"` // groups the signals of one episode
		Metadata      json.RawMessage `json:"metadata,omitempty"`      // the producer's own
		Payload       json.RawMessage `json:"payload"`                 // as the type has it
	}

	// SignalMissed says that this connection was too slow for some signals, which are not sent.
	SignalMissed struct {
		Count uint64 `json:"count"` // since the last signal
	}

	// History is the conversation as the agent knows it, oldest first.
	History struct {
		Items []HistoryItem `json:"items"`
	}

	// TurnMetrics says where a turn's time went, on the gateway's clock, in ms. What did not happen is left out.
	TurnMetrics struct {
		TurnID       string `json:"turnId"`
		SttMs        *int64 `json:"sttMs,omitempty"`        // from the end of speech to the final transcript
		FirstTokenMs *int64 `json:"firstTokenMs,omitempty"` // from the question to the first of the answer's text
		FirstAudioMs *int64 `json:"firstAudioMs,omitempty"` // from the question to the first of its sound
		GatewayMs    int64  `json:"gatewayMs"`              // what the gateway itself added
		TotalMs      int64  `json:"totalMs"`                // from the end of the user's half to the end of the answer's
		Usage        *Usage `json:"usage,omitempty"`
	}

	// SessionEnded says that the session is over, on every end that the gateway chooses.
	SessionEnded struct {
		Reason EndReason `json:"reason"`
	}
)

// Terms is what is in force in a session of version 2.
type Terms struct {
	Protocol       int          `json:"protocol"`
	Resumed        bool         `json:"resumed"`
	Recovered      bool         `json:"recovered"` // exactly the missing events follow
	ResumeToken    string       `json:"resumeToken"`
	ResumeWindowMs int64        `json:"resumeWindowMs"` // how long the session outlives its connection
	LastSeq        uint64       `json:"lastSeq"`
	Turns          string       `json:"turns"`
	Agent          string       `json:"agent"`
	Audio          AudioFormats `json:"audio"`
	Voice          string       `json:"voice,omitempty"` // who speaks the answers first; left out where the gateway has no voice
	TurnDetection  string       `json:"turnDetection"`
	VAD            *VAD         `json:"vad,omitempty"` // in force where turnDetection is "vad"
	Interrupt      bool         `json:"interrupt"`
	Approvals      bool         `json:"approvals"`
	Room           string       `json:"room"`
	Follow         []string     `json:"follow,omitempty"` // sources whose tools are shown
	Features       []string     `json:"features"`         // what of version 2 this gateway gives: text, audio_in, audio_out, opus, signals, …
}

// Usage is what an answer took of a model.
type Usage struct {
	PromptTokens     int `json:"promptTokens"`
	CompletionTokens int `json:"completionTokens"`
}

// HistoryItem is one part of a conversation.
type HistoryItem struct {
	Role      string  `json:"role"` // "user" or "assistant"
	Text      string  `json:"text"`
	HeardText *string `json:"heardText,omitempty"` // where it differs from the text
	At        int64   `json:"at"`                  // Unix ms
}

// CancelReason says why an answer ended before its end.
type CancelReason string

// Why an answer ends before its end.
const (
	CancelClient   CancelReason = "client"
	CancelBargeIn  CancelReason = "barge_in"
	CancelError    CancelReason = "error"
	CancelShutdown CancelReason = "shutdown"
)

// CancelReasons returns all of them.
func CancelReasons() []CancelReason {
	return []CancelReason{CancelClient, CancelBargeIn, CancelError, CancelShutdown}
}

// EndReason says why a session is over.
type EndReason string

// Why a session ends.
const (
	EndClosed   EndReason = "closed"   // session.close
	EndIdle     EndReason = "idle"     // nothing happened for too long
	EndShutdown EndReason = "shutdown" // the gateway stops, and keeps nothing
	EndError    EndReason = "error"    // a fault of the gateway's
)

// EndReasons returns all of them.
func EndReasons() []EndReason { return []EndReason{EndClosed, EndIdle, EndShutdown, EndError} }

// Type implements [Message].
func (SessionStart) Type() string      { return "session.start" }
func (MockedTurnTrigger) Type() string { return "mocked.turn.trigger" }
func (InputAudioAppend) Type() string  { return "input_audio.append" }
func (InputAudioCommit) Type() string  { return "input_audio.commit" }
func (ResponseCancel) Type() string    { return "response.cancel" }
func (SessionReady) Type() string      { return "session.ready" }
func (SessionState) Type() string      { return "session.state" }
func (TranscriptPartial) Type() string { return "transcript.partial" }
func (TranscriptFinal) Type() string   { return "transcript.final" }
func (ResponseTextDelta) Type() string { return "response.text.delta" }
func (ResponseCompleted) Type() string { return "response.completed" }
func (Error) Type() string             { return "error" }

func (SessionResume) Type() string      { return "session.resume" }
func (InputAudioClear) Type() string    { return "input_audio.clear" }
func (InputTextSubmit) Type() string    { return "input_text.submit" }
func (PlaybackAck) Type() string        { return "playback.ack" }
func (ApprovalAnswer) Type() string     { return "approval.answer" }
func (SignalEmit) Type() string         { return "signal.emit" }
func (SignalSubscribe) Type() string    { return "signal.subscribe" }
func (SignalUnsubscribe) Type() string  { return "signal.unsubscribe" }
func (HistoryGet) Type() string         { return "history.get" }
func (HistoryClear) Type() string       { return "history.clear" }
func (SessionClose) Type() string       { return "session.close" }
func (ResponseCreated) Type() string    { return "response.created" }
func (ResponseAudioDelta) Type() string { return "response.audio.delta" }
func (ResponseCancelled) Type() string  { return "response.cancelled" }
func (ThinkingDelta) Type() string      { return "thinking.delta" }
func (ToolCall) Type() string           { return "tool.call" }
func (ToolResult) Type() string         { return "tool.result" }
func (ApprovalRequest) Type() string    { return "approval.request" }
func (Signal) Type() string             { return "signal" }
func (SignalMissed) Type() string       { return "signal.missed" }
func (History) Type() string            { return "history" }
func (TurnMetrics) Type() string        { return "turn.metrics" }
func (SessionEnded) Type() string       { return "session.ended" }

// events is the contract. The documents and the decoder are made from it; a new event is a struct above and a row here.
var events = []Event{
	{From: Client, Since: 1, zero: SessionStart{},
		Doc:  "Acknowledges the session again: session.ready and session.state follow, with the same id. Harmless at any time.",
		Doc2: "Begins a session, or says how it is to be; session.ready and session.state follow. Without fields harmless at any time."},
	{From: Client, Since: 1, zero: MockedTurnTrigger{},
		Doc: "Runs the one fixed, obviously mocked turn. Taken only while no turn is in flight."},
	{From: Client, Since: 1, zero: InputAudioAppend{}, decode: decodeAppend,
		Doc:  "Adds captured audio to the user's turn: an opaque string in deterministic turns, base64 PCM16 mono 16 kHz in agent-backed ones.",
		Doc2: "Adds captured audio to the user's turn: base64 in the format agreed, or an opaque string in deterministic turns."},
	{From: Client, Since: 1, zero: InputAudioCommit{},
		Doc: "Ends the user's turn; the final transcript and the answer follow."},
	{From: Client, Since: 1, zero: ResponseCancel{},
		Doc:  "Interrupts listening, thinking or speaking. Safe at any time; nothing of the cancelled turn follows.",
		Doc2: "Stops listening, thinking or speaking. Safe at any time; of the answer only response.cancelled and turn.metrics follow."},

	{From: Server, Since: 1, zero: SessionReady{},
		Doc:  "The session exists; its id. Sent at once after the upgrade and in answer to session.start.",
		Doc2: "The session exists; all that is in force in it. The answer to session.start and session.resume."},
	{From: Server, Since: 1, zero: SessionState{},
		Doc: "The session's phase: idle, listening, thinking or speaking."},
	{From: Server, Since: 1, zero: TranscriptPartial{},
		Doc: "What has been recognised so far. Each replaces the one before."},
	{From: Server, Since: 1, zero: TranscriptFinal{},
		Doc: "What the user said. Once a turn; empty when nothing was recognised."},
	{From: Server, Since: 1, zero: ResponseTextDelta{},
		Doc: "The next piece of the answer's text."},
	{From: Server, Since: 1, zero: ResponseCompleted{},
		Doc:  "The answer is whole. A cancelled or failed answer has none.",
		Doc2: "The answer is whole. A cancelled or failed one ends with response.cancelled."},
	{From: Server, Since: 1, zero: Error{},
		Doc: "Something went wrong and says what to do. The session goes on unless the socket is closed after it."},

	{From: Client, Since: 2, zero: SessionResume{},
		Doc: "Takes a session up again after its connection was lost, as the first message of a new one."},
	{From: Client, Since: 2, zero: InputAudioClear{},
		Doc: "Forgets what the user has said so far in this turn."},
	{From: Client, Since: 2, zero: InputTextSubmit{}, decode: decodeText,
		Doc: "A typed turn."},
	{From: Client, Since: 2, zero: PlaybackAck{},
		Doc: "How much of the answer's audio has been played; at least four a second while playing."},
	{From: Client, Since: 2, zero: ApprovalAnswer{},
		Doc: "Yes or no to the tool of an approval.request, from any peer of a session with approvals: true. The first answer counts."},
	{From: Client, Since: 2, zero: SignalEmit{},
		Doc: "What a person does, user.*, into the pipeline and back to the host; at most 50 a second, after a first 100."},
	{From: Client, Since: 2, zero: SignalSubscribe{},
		Doc: "Follows the signal pipeline in this connection: what fits any of up to 16 filters comes as signal. A star at the end of a type or a source stands for anything; without a list, all."},
	{From: Client, Since: 2, zero: SignalUnsubscribe{},
		Doc: "Takes back the filter with the same lists; without any, all filters."},
	{From: Client, Since: 2, zero: HistoryGet{},
		Doc: "Asks for the conversation as the agent knows it."},
	{From: Client, Since: 2, zero: HistoryClear{},
		Doc: "Begins a new conversation in the same session; history follows, empty."},
	{From: Client, Since: 2, zero: SessionClose{},
		Doc: "Ends the session for good."},

	{From: Server, Since: 2, zero: ResponseCreated{},
		Doc: "An answer begins. It has exactly one end, response.completed or response.cancelled."},
	{From: Server, Since: 2, zero: ResponseAudioDelta{},
		Doc: "The next piece of the answer's sound, its place in the answer, and the text that it speaks."},
	{From: Server, Since: 2, zero: ResponseCancelled{},
		Doc: "The answer ended before its end. Nothing of it follows but its turn.metrics."},
	{From: Server, Since: 2, zero: ThinkingDelta{},
		Doc: "The next piece of the agent's reasoning, which is no part of its answer."},
	{From: Server, Since: 2, zero: ToolCall{},
		Doc: "The agent calls a tool. A tool.result with the same callId follows, unless the answer ends first."},
	{From: Server, Since: 2, zero: ToolResult{},
		Doc: "What the tool returned, or why it failed. It also takes back an approval.request of the same callId."},
	{From: Server, Since: 2, zero: ApprovalRequest{},
		Doc: "May a tool run? Asked where approvals are on, answered with approval.answer; no answer in time is a no. The tool.result of its callId, or the end of the answer, takes it back."},
	{From: Server, Since: 2, zero: ganglia.Status{},
		Doc: "What the agent is doing, or a source that is followed, as a tool begins; the very object of the channel ganglia-events. The same action is said again only after 500 ms."},
	{From: Server, Since: 2, zero: ganglia.Artifact{},
		Doc: "Something to look at that came of a tool, after its tool.result; the very object of the channel ganglia-events."},
	{From: Server, Since: 2, zero: Signal{},
		Doc: "One signal of the pipeline, to a connection that has sent signal.subscribe. It has no seq and is never sent again."},
	{From: Server, Since: 2, zero: SignalMissed{},
		Doc: "So many signals are not sent, since this connection did not read fast enough. It has no seq; the next signal follows it."},
	{From: Server, Since: 2, zero: History{},
		Doc: "The conversation as the agent knows it, in answer to history.get and history.clear."},
	{From: Server, Since: 2, zero: TurnMetrics{},
		Doc: "Where the turn's time went, on one clock."},
	{From: Server, Since: 2, zero: SessionEnded{},
		Doc: "The session is over, on every end that the gateway chooses."},
}

// byType finds a row by the event's name.
var byType = func() map[string]*Event {
	m := make(map[string]*Event, len(events))
	for i := range events {
		events[i].Type = events[i].zero.Type()
		events[i].shape = shapeOf(reflect.TypeOf(events[i].zero))
		m[events[i].Type] = &events[i]
	}
	return m
}()
