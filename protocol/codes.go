package protocol

// Code names what went wrong, in an error event. The set is closed: a client may switch on it.
type Code string

// The error codes. turn_interrupted, unsupported and session_gone are of version 2.
const (
	CodeInvalidJSON        Code = "invalid_json"
	CodeInvalidMessage     Code = "invalid_message"
	CodeMockedTurnInFlight Code = "mocked_turn_in_flight"
	CodeTurnInFlight       Code = "turn_in_flight"
	CodeAudioTooLong       Code = "audio_too_long"
	CodeRateLimited        Code = "rate_limited"
	CodeAgentUnavailable   Code = "agent_unavailable"
	CodeAgentFailed        Code = "agent_failed"
	CodeAgentTimeout       Code = "agent_timeout"
	CodeSpeechUnavailable  Code = "speech_unavailable"
	CodeSpeechFailed       Code = "speech_failed"
	CodeSessionLimit       Code = "session_limit"
	CodeInternal           Code = "internal"
	CodeTurnInterrupted    Code = "turn_interrupted"
	CodeUnsupported        Code = "unsupported"
	CodeSessionGone        Code = "session_gone"
)

// CodeInfo is one row of the table of error codes.
type CodeInfo struct {
	Code      Code
	Retryable bool   // the same message may succeed later
	Meaning   string // for the documents
}

var codes = []CodeInfo{
	{CodeInvalidJSON, false, "The message is not JSON. It was dropped; the socket stays."},
	{CodeInvalidMessage, false, "The message is JSON but no event that a client may send. It was dropped; the socket stays."},
	{CodeMockedTurnInFlight, true, "A deterministic turn is still running. It goes on; send again when the session is idle."},
	{CodeTurnInFlight, true, "An agent-backed turn is still running. It goes on; send again when the session is idle, or cancel first."},
	{CodeAudioTooLong, false, "More than 10 minutes of audio in one turn. What came before is kept; commit or cancel."},
	{CodeRateLimited, true, "Audio arrives faster than twice real time, or signals faster than they may. What came was dropped; slow down."},
	{CodeAgentUnavailable, true, "The agent cannot be reached."},
	{CodeAgentFailed, true, "The agent stopped with an error."},
	{CodeAgentTimeout, true, "The agent did not answer in time."},
	{CodeSpeechUnavailable, true, "No recogniser or no voice is there, or all of them are busy."},
	{CodeSpeechFailed, true, "The recogniser or the voice stopped with an error."},
	{CodeSessionLimit, true, "The gateway runs as many sessions as it may. The socket is closed with 4004."},
	{CodeInternal, true, "Something went wrong in the gateway. The session goes on."},
	{CodeTurnInterrupted, true, "A restart of the gateway broke the turn off. Ask again."},
	{CodeUnsupported, false, "This gateway cannot do that. Nothing changed."},
	{CodeSessionGone, false, "The session to resume has ended, or never was. Start a new one. The socket is closed with 4006."},
}

// Codes returns the table of error codes.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// Retryable says whether the same message may succeed later. A code that is not in the table is not retryable.
func (c Code) Retryable() bool {
	for i := range codes {
		if codes[i].Code == c {
			return codes[i].Retryable
		}
	}
	return false
}

// CloseCode is the status of a WebSocket close frame (RFC 6455 section 7.4; 4000 to 4999 are ours).
type CloseCode int

// The close codes. 4001, 4002 and 4006 are of version 2.
const (
	CloseGoingAway       CloseCode = 1001
	CloseProtocolError   CloseCode = 1002
	CloseInvalidText     CloseCode = 1007
	ClosePolicyViolation CloseCode = 1008
	CloseTooBig          CloseCode = 1009
	CloseInternal        CloseCode = 1011
	CloseAuthentication  CloseCode = 4001
	CloseTakenOver       CloseCode = 4002
	CloseSlowConsumer    CloseCode = 4003
	CloseSessionLimit    CloseCode = 4004
	CloseIdle            CloseCode = 4005
	CloseSessionGone     CloseCode = 4006
)

// CloseInfo is one row of the table of close codes.
type CloseInfo struct {
	Code      CloseCode
	Name      string
	Reconnect bool   // a client should come back by itself, with back-off
	Meaning   string // for the documents
}

var closes = []CloseInfo{
	{CloseGoingAway, "going_away", true, "The gateway is stopping. Come back."},
	{CloseProtocolError, "protocol_error", false, "A WebSocket frame was malformed (RFC 6455)."},
	{CloseInvalidText, "invalid_text", false, "A text message was not UTF-8 (RFC 6455)."},
	{ClosePolicyViolation, "policy_violation", false, "The gateway refused this client."},
	{CloseTooBig, "too_big", false, "A message was over the size limit, 1 MiB."},
	{CloseInternal, "internal", true, "Something went wrong in the gateway. Come back."},
	{CloseAuthentication, "authentication", false, "The token is missing, wrong or expired. Get a new one."},
	{CloseTakenOver, "taken_over", false, "Another connection has taken the session over."},
	{CloseSlowConsumer, "slow_consumer", true, "The client did not read what was sent to it. Come back, and resume."},
	{CloseSessionLimit, "session_limit", false, "The gateway runs as many sessions as it may. Try again later."},
	{CloseIdle, "idle", false, "Nothing happened for too long."},
	{CloseSessionGone, "session_gone", false, "The session to resume has ended, or never was. Start a new one."},
}

// Closes returns the table of close codes.
func Closes() []CloseInfo { return append([]CloseInfo(nil), closes...) }

// Name is the code's name in logs and metrics; a code that is not in the table has none.
func (c CloseCode) Name() string {
	for i := range closes {
		if closes[i].Code == c {
			return closes[i].Name
		}
	}
	return ""
}
