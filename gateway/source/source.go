// Package source listens to agents that somebody else runs, and makes signals of what they say.
//
// Start at [Sources], which keeps them: the goroutine of [Sources.Run] owns what is known of all, in a [Registry], and each
// source that is connected has goroutines of its own. A [Link] keeps a connection, and takes it up again; which kind it is,
// [Detect] tells from the address. What comes goes through the parser of its protocol: [Plain] for signals as they are,
// [OpenClaw] for its frames, [Exchange] for the answers of models, [Stamp.ParseHook] for Claude Code's hooks. The formats
// of vendors are read in the packages below turn; here they become whole signals, each of which is valid.
//
// The files: sources.go is what may be asked for, keeper.go the state behind it, child.go one source at work, dialer.go how
// it is connected, websocket.go, events.go and models.go the ways of doing so, gate.go what it may send.
//
// An address may come from anybody: [Dialer] connects to none that is dangerous.
package source

import "strings"

// Protocol says how to speak to a source.
type Protocol string

// The six protocols.
const (
	WebSocket Protocol = "websocket" // signals as they are
	SSE       Protocol = "sse"       // an event stream or lines of JSON
	OpenAI    Protocol = "openai"
	Anthropic Protocol = "anthropic"
	Gateway   Protocol = "openclaw"
	MIDI      Protocol = "midi"
)

// Detect tells the protocol from an address. For an HTTP address that says nothing of itself it is [SSE], which a probe
// may make [OpenAI].
func Detect(address string) Protocol {
	a := strings.ToLower(strings.TrimSpace(address))
	switch {
	case strings.HasPrefix(a, "midi://"):
		return MIDI
	case strings.Contains(a, "18789"), strings.Contains(a, "openclaw"):
		return Gateway
	case strings.HasPrefix(a, "ws://"), strings.HasPrefix(a, "wss://"):
		return WebSocket
	case strings.Contains(a, "anthropic"):
		return Anthropic
	}
	return SSE
}

// State is how a source is.
type State string

// The five states.
const (
	Disconnected State = "disconnected" // and ready to connect
	Connecting   State = "connecting"
	Connected    State = "connected"
	Failed       State = "error"
	Unavailable  State = "unavailable" // known, and not to be reached
)

// Source is what there is to say of one source. It holds no key.
type Source struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Colour          string   `json:"colour"` // #rrggbb
	Protocol        Protocol `json:"protocol"`
	URL             string   `json:"url"`
	Local           bool     `json:"local"` // found on this machine, rather than added by somebody
	State           State    `json:"state"`
	Error           string   `json:"error,omitempty"`
	EventsPerSecond int      `json:"eventsPerSecond"`
	Models          []string `json:"models"`
	Model           string   `json:"model,omitempty"` // the chosen one
	NeedsKey        bool     `json:"needsKey,omitempty"`
	HasKey          bool     `json:"hasKey,omitempty"`
	TokenAutoFilled bool     `json:"tokenAutoFilled,omitempty"`
}

// The ids of the two sources that may connect by themselves; see [AutoConnect].
const (
	ClaudeCodeID = "local:claude-code"
	OpenClawID   = "local:openclaw"
)

// The colours of local sources, by their ids; a MIDI device has that of all of them.
var localColours = map[string]string{
	ClaudeCodeID:      "#d97757",
	OpenClawID:        "#e5484d",
	"local:lm-studio": "#6e56cf",
	"local:ollama":    "#3e8e7e",
}

const midiColour = "#c2a83e"

// palette has the colours of remote sources, one after the other.
var palette = []string{"#4f8ef7", "#f76b15", "#30a46c", "#d6409f", "#ffb224", "#12a594", "#ab4aba", "#8d8d8d"}

func localColour(id string) string {
	if c, ok := localColours[id]; ok {
		return c
	}
	return midiColour
}
