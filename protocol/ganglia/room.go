package ganglia

// AgentTranscript is the agent's answer as far as it goes, for clients that read no text streams (lk.transcription). It
// comes again with every piece, and once more when the answer is whole.
type AgentTranscript struct {
	SegmentID string `json:"segmentId"` // the piece of the answer that it belongs to
	Delta     string `json:"delta"`     // what is new since the last; empty in the final one
	Text      string `json:"text"`      // all of it
	Final     bool   `json:"final"`
}

// UserTranscript is what was recognised so far of what a person says, for clients that read no text streams.
type UserTranscript struct {
	SegmentID string `json:"segmentId"` // one for each time that somebody speaks
	Text      string `json:"text"`      // all of it: what was said before may have changed
	Final     bool   `json:"final"`
}

// SystemEvent says that a part of the conversation broke, such as the voice, or that it works again.
type SystemEvent struct {
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`   // for a person, some words
	Message  string   `json:"message"` // for a person, a sentence
}

// Severity says whether a [SystemEvent] is bad news.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeveritySuccess Severity = "success"
)

// SessionHold says that the agent is about to leave the room, as nobody has said anything for long. A client that speaks
// again gets it back.
type SessionHold struct {
	Reason string `json:"reason"` // such as HoldIdle
}

// HoldIdle is the reason of a [SessionHold] after a silence.
const HoldIdle = "idle"

// Bootstrap encloses what an agent does by itself when it has just come.
type Bootstrap struct {
	Phase Phase `json:"phase"`
}

// Phase is an end of what a [Bootstrap] encloses.
type Phase string

// The phases.
const (
	PhaseStart Phase = "start"
	PhaseEnd   Phase = "end"
)

// PipelineInfo names what recognises, answers and speaks, for a client's diagnostics.
type PipelineInfo struct {
	STT string `json:"stt"`
	TTS string `json:"tts"`
	LLM string `json:"llm"`
}

// Type implements [Event].
func (AgentTranscript) Type() string { return "agent_transcript" }
func (UserTranscript) Type() string  { return "user_transcript" }
func (SystemEvent) Type() string     { return "system_event" }
func (SessionHold) Type() string     { return "session_hold" }
func (Bootstrap) Type() string       { return "bootstrap" }
func (PipelineInfo) Type() string    { return "pipeline_info" }

// MarshalJSON writes the channel's object, its type first.
func (t AgentTranscript) MarshalJSON() ([]byte, error) {
	type fields AgentTranscript
	return typed(t.Type(), fields(t))
}

// MarshalJSON writes the channel's object, its type first.
func (t UserTranscript) MarshalJSON() ([]byte, error) {
	type fields UserTranscript
	return typed(t.Type(), fields(t))
}

// MarshalJSON writes the channel's object, its type first.
func (s SystemEvent) MarshalJSON() ([]byte, error) {
	type fields SystemEvent
	return typed(s.Type(), fields(s))
}

// MarshalJSON writes the channel's object, its type first.
func (h SessionHold) MarshalJSON() ([]byte, error) {
	type fields SessionHold
	return typed(h.Type(), fields(h))
}

// MarshalJSON writes the channel's object, its type first.
func (b Bootstrap) MarshalJSON() ([]byte, error) {
	type fields Bootstrap
	return typed(b.Type(), fields(b))
}

// MarshalJSON writes the channel's object, its type first.
func (p PipelineInfo) MarshalJSON() ([]byte, error) {
	type fields PipelineInfo
	return typed(p.Type(), fields(p))
}
