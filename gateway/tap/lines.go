package tap

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"vela/protocol/signal"
)

// Lines makes signals of what a program prints, line by line: of lines of JSON, or, where Text says so, of text for people.
type Lines struct {
	Text          bool
	Source        string // of the signals; adapter:tap:jsonl, or adapter:tap:raw of text, unless given
	CorrelationID string // what ties them to others; may be empty
	NewID         func() string
	Now           func() time.Time
}

// somebody is the agent in signals of lines that name none.
const somebody = "unknown"

// agentTypes are the well-known types that a line of JSON may have. What a person does on a stage is not among them: no
// program that is wrapped does that.
var agentTypes = func() (types []string) {
	for _, p := range signal.WellKnown() {
		if name := p.SignalType(); !strings.HasPrefix(name, "user.") {
			types = append(types, name)
		}
	}
	return types
}()

// Signal is the signal of one line; false for a line that is none.
func (l Lines) Signal(line []byte) (signal.Raw, bool) {
	line = bytes.TrimSpace(line)
	r := signal.Raw{ID: l.NewID(), Timestamp: l.Now().UnixMilli(), Source: l.Source, CorrelationID: l.CorrelationID}
	ok := len(line) > 0
	if l.Text {
		r.Source = or(r.Source, "adapter:tap:raw")
		r.Type, r.Payload = ofText(string(bytes.ToValidUTF8(line, []byte("\ufffd"))))
	} else {
		r.Source = or(r.Source, "adapter:tap:jsonl")
		ok = ofJSON(line, &r)
	}
	return r, ok
}

// What a line of text says, the first that fits.
var (
	failure = regexp.MustCompile(`(?i)Error:|Exception:|FAILED`)
	call    = regexp.MustCompile(`(?i)(?:Calling tool:|Using:)\s*(\S*)`)
	outcome = regexp.MustCompile(`(?i)Result:|Output:`)
)

func ofText(line string) (string, json.RawMessage) {
	if failure.MatchString(line) {
		return payload(signal.Error{AgentID: somebody, Message: line, Severity: signal.SeverityError})
	}
	if m := call.FindStringSubmatch(line); m != nil {
		return payload(signal.ToolCall{ToolName: or(m[1], "unknown"), AgentID: somebody})
	}
	if outcome.MatchString(line) {
		return payload(signal.ToolResult{ToolName: "unknown", AgentID: somebody, Success: true, Output: object("raw", quoted(line))})
	}
	return payload(signal.TextDelta{AgentID: somebody, Content: line})
}

// ofJSON fills in the type, the payload and the metadata; false for what is not JSON, or is null.
func ofJSON(line []byte, r *signal.Raw) bool {
	if !json.Valid(line) || string(line) == "null" {
		return false
	}
	var named struct {
		Type    any `json:"type"`
		AgentID any `json:"agentId"`
	}
	_ = json.Unmarshal(line, &named) // what is no object names nothing
	kind, _ := named.Type.(string)
	if slices.Contains(agentTypes, kind) {
		r.Type, r.Payload = kind, without(line, "type")
		return true
	}
	var text bytes.Buffer
	_ = json.Compact(&text, line) // it is valid
	agent, _ := named.AgentID.(string)
	r.Type, r.Payload = payload(signal.TextDelta{AgentID: or(agent, somebody), Content: text.String()})
	r.Metadata = object("raw", text.Bytes())
	if kind != "" {
		r.Metadata = signal.Set(r.Metadata, "originalType", quoted(kind))
	}
	return true
}

func payload(p signal.Payload) (string, json.RawMessage) {
	r, _ := signal.Envelope{Payload: p}.Raw() // strings always have a JSON
	return r.Type, r.Payload
}

// without is a JSON object without the members of that name.
func without(object []byte, name string) json.RawMessage {
	b := []byte{'{'}
	for n, value := range signal.Members(object) {
		if string(n) == name {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, quoted(string(n))...), ':'), value...)
	}
	return append(b, '}')
}

func object(name string, value json.RawMessage) json.RawMessage {
	return signal.Set(json.RawMessage("{}"), name, value)
}

func quoted(s string) json.RawMessage {
	text, _ := json.Marshal(s) // a string always has a JSON
	return text
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
