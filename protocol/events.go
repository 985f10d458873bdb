package protocol

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
	// SessionStart asks for session.ready and session.state again; it is harmless at any time.
	SessionStart struct{}

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

	// ResponseCancel stops whatever is going on and brings the session back to idle.
	ResponseCancel struct{}
)

// What the gateway sends.
type (
	// SessionReady says that the session exists, and its id, a UUID.
	SessionReady struct {
		SessionID string `json:"sessionId"`
	}

	// SessionState says in which phase the session now is.
	SessionState struct {
		Value State `json:"value"`
	}

	// TranscriptPartial is what has been recognised so far; each one replaces the one before.
	TranscriptPartial struct {
		Text string `json:"text"`
	}

	// TranscriptFinal is what the user said, once a turn. Empty when nothing was recognised.
	TranscriptFinal struct {
		Text string `json:"text"`
	}

	// ResponseTextDelta is the next piece of the answer's text.
	ResponseTextDelta struct {
		Text string `json:"text"`
	}

	// ResponseCompleted says that the answer is whole. A cancelled or failed one has none.
	ResponseCompleted struct{}

	// Error says what went wrong, in words for a person. The session goes on unless the socket is closed after it.
	Error struct {
		Code      Code   `json:"code"`
		Message   string `json:"message"`
		Retryable bool   `json:"retryable,omitempty"` // the same message may succeed later
	}
)

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

// events is the contract. The documents and the decoder are made from it; a new event is a struct above and a row here.
var events = []Event{
	{From: Client, Since: 1, zero: SessionStart{}, decode: empty[SessionStart],
		Doc: "Acknowledges the session again: session.ready and session.state follow, with the same id. Harmless at any time."},
	{From: Client, Since: 1, zero: MockedTurnTrigger{}, decode: empty[MockedTurnTrigger],
		Doc: "Runs the one fixed, obviously mocked turn. Taken only while no turn is in flight."},
	{From: Client, Since: 1, zero: InputAudioAppend{}, decode: decodeAppend,
		Doc: "Adds captured audio to the user's turn: an opaque string in deterministic turns, base64 PCM16 mono 16 kHz in agent-backed ones."},
	{From: Client, Since: 1, zero: InputAudioCommit{}, decode: empty[InputAudioCommit],
		Doc: "Ends the user's turn; the final transcript and the answer follow."},
	{From: Client, Since: 1, zero: ResponseCancel{}, decode: empty[ResponseCancel],
		Doc: "Interrupts listening, thinking or speaking. Safe at any time; nothing of the cancelled turn follows."},

	{From: Server, Since: 1, zero: SessionReady{}, decode: viaJSON[SessionReady],
		Doc: "The session exists; its id. Sent at once after the upgrade and in answer to session.start."},
	{From: Server, Since: 1, zero: SessionState{}, decode: viaJSON[SessionState],
		Doc: "The session's phase: idle, listening, thinking or speaking."},
	{From: Server, Since: 1, zero: TranscriptPartial{}, decode: viaJSON[TranscriptPartial],
		Doc: "What has been recognised so far. Each replaces the one before."},
	{From: Server, Since: 1, zero: TranscriptFinal{}, decode: viaJSON[TranscriptFinal],
		Doc: "What the user said. Once a turn; empty when nothing was recognised."},
	{From: Server, Since: 1, zero: ResponseTextDelta{}, decode: viaJSON[ResponseTextDelta],
		Doc: "The next piece of the answer's text."},
	{From: Server, Since: 1, zero: ResponseCompleted{}, decode: empty[ResponseCompleted],
		Doc: "The answer is whole. A cancelled or failed answer has none."},
	{From: Server, Since: 1, zero: Error{}, decode: viaJSON[Error],
		Doc: "Something went wrong and says what to do. The session goes on unless the socket is closed after it."},
}

// byType finds a row by the event's name.
var byType = func() map[string]*Event {
	m := make(map[string]*Event, len(events))
	for i := range events {
		events[i].Type = events[i].zero.Type()
		m[events[i].Type] = &events[i]
	}
	return m
}()
