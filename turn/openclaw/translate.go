package openclaw

import (
	"encoding/json"
	"slices"

	"vela/protocol/signal"
)

// Signal is what one run said, and which run: its id is the correlation id of an envelope.
type Signal struct {
	RunID      string
	SessionKey string // OpenClaw's, such as agent:main:main
	Payload    signal.Payload
}

// Translator makes signals of the frames of one connection. Text that comes in several forms comes out once, a failure
// that is told several times comes out once, and nothing comes of a run after its end. What ends a run is a
// [signal.Completion], whose Success is false if the run was stopped, or a [signal.Error].
//
// Its zero value works. It belongs to one goroutine.
type Translator struct {
	runs  map[string]*progress
	order []string // of their begin, to forget the oldest
}

// maxRuns bounds how many runs a [Translator] remembers. A run that is over is remembered too, since more may come of it.
const maxRuns = 1024

// Translate makes signals of one frame as it was received. What is no event of a run, and what is no frame at all, makes
// none.
func (t *Translator) Translate(message []byte) []Signal {
	f, err := parseFrame(message)
	if err != nil {
		return nil
	}
	ev, ok := f.run()
	if !ok {
		return nil
	}
	return t.next(ev)
}

func (t *Translator) next(ev runEvent) []Signal {
	p := t.runs[ev.RunID]
	if p == nil {
		p = t.begin(ev.RunID)
	}
	payloads := p.next(ev)
	if len(payloads) == 0 {
		return nil
	}
	signals := make([]Signal, len(payloads))
	for i, payload := range payloads {
		signals[i] = Signal{ev.RunID, ev.SessionKey, payload}
	}
	return signals
}

func (t *Translator) begin(id string) *progress {
	if t.runs == nil {
		t.runs = map[string]*progress{}
	}
	if len(t.order) >= maxRuns {
		delete(t.runs, t.order[0])
		t.order = t.order[1:]
	}
	p := &progress{}
	t.runs[id], t.order = p, append(t.order, id)
	return p
}

// forget lets go of a run that is not asked for any more.
func (t *Translator) forget(id string) {
	delete(t.runs, id)
	if i := slices.Index(t.order, id); i >= 0 {
		t.order = slices.Delete(t.order, i, i+1)
	}
}

// runEvent is an agent or a chat event, both of which tell of a run. The agent's stream is the finer one. The chat's has
// what an agent event does not tell: that OpenClaw has given up on a run, or answered without running its agent.
type runEvent struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`

	Stream string          `json:"stream"` // of an agent event
	Data   json.RawMessage `json:"data"`

	State        string      `json:"state"` // of a chat event: status, delta, final, aborted or error
	Message      chatMessage `json:"message"`
	ErrorMessage string      `json:"errorMessage"`
	ErrorDetail  observation `json:"errorDetail"`
}

type chatMessage struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

type observation struct {
	FailoverReason string `json:"failoverReason"`
}

// run reads an event that tells of a run. session.tool is the tool stream of a run of somebody else.
func (f frame) run() (runEvent, bool) {
	if f.Event != "agent" && f.Event != "chat" && f.Event != "session.tool" {
		return runEvent{}, false
	}
	var ev runEvent
	if err := lenient(f.Payload, &ev); err != nil || ev.RunID == "" {
		return runEvent{}, false
	}
	if f.Event == "chat" {
		ev.Stream, ev.Data = "", nil
	} else {
		ev.State = ""
	}
	return ev, true
}

// agentData is the data of an agent event, whatever its stream. A second name for a field is that of older versions.
type agentData struct {
	Phase            string          `json:"phase"`
	Text             string          `json:"text"` // all of it so far
	Delta            string          `json:"delta"`
	ItemID           string          `json:"itemId"`
	Kind             string          `json:"kind"`
	Status           string          `json:"status"`
	ProgressText     string          `json:"progressText"`
	ToolCallID       string          `json:"toolCallId"`
	CallID           string          `json:"callId"`
	Name             string          `json:"name"`
	ToolName         string          `json:"toolName"`
	Args             json.RawMessage `json:"args"`
	Result           json.RawMessage `json:"result"`
	Output           json.RawMessage `json:"output"`
	IsError          *bool           `json:"isError"`
	Success          *bool           `json:"success"`
	Error            json.RawMessage `json:"error"`
	Message          string          `json:"message"`
	Aborted          bool            `json:"aborted"`
	ExecutionSettled bool            `json:"executionSettled"` // nothing will be tried again
	OutputTokens     int             `json:"outputTokens"`     // of the run so far
	Model            string          `json:"model"`
	Observation      observation     `json:"errorObservation"`
	TerminalReply    struct {
		Disposition string `json:"disposition"`
		Text        string `json:"text"`
	} `json:"terminalReply"`
}

// reply is the answer as a whole, unless it is for nobody to see.
func (d agentData) reply() string {
	if d.TerminalReply.Disposition != "visible" {
		return ""
	}
	return d.TerminalReply.Text
}

func (d agentData) call() string { return first(d.ToolCallID, d.CallID) }
func (d agentData) tool() string { return first(d.Name, d.ToolName, "unknown") }

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
