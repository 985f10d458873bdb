package signal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Bounds of a signal. The lengths are in characters, as the schema counts.
const (
	MaxSize  = 512 << 10 // bytes of a signal's JSON text, so that any NATS server takes it
	maxName  = 128       // of an id and a type
	maxLabel = 256       // of a source and a correlation id
	maxDepth = 128       // of objects and arrays within one another; for whoever reads them by recursion
	maxCount = 1<<53 - 1 // what a JavaScript number holds exactly
)

// Check holds a signal to the schema, and says what is wrong with it. It needs no memory, so it may be called for each.
func Check(r Raw) error {
	for _, f := range []struct {
		name, value string
		most        int
		optional    bool
	}{
		{"id", r.ID, maxName, false}, {"type", r.Type, maxName, false}, {"source", r.Source, maxLabel, false},
		{"correlationId", r.CorrelationID, maxLabel, true},
	} {
		if !fits(f.value, f.most) && !(f.optional && f.value == "") {
			return fmt.Errorf("signal: %s has to have 1 to %d characters", f.name, f.most)
		}
	}
	switch {
	case r.Timestamp < 0 || r.Timestamp > maxCount:
		return fmt.Errorf("signal: timestamp is no Unix time in ms")
	case len(r.Metadata) > 0 && !isObject(r.Metadata):
		return fmt.Errorf("signal: metadata is no object")
	}
	return CheckPayload(r.Type, r.Payload)
}

// CheckPayload holds a payload, which is valid JSON, to the schema of a type.
func CheckPayload(typ string, payload json.RawMessage) error {
	if !isObject(payload) {
		return fmt.Errorf("signal: the payload of %.128q is no object", typ)
	}
	known, ok := shapes[typ]
	if !ok {
		return nil
	}
	if fault := known.fault(payload); fault != "" {
		return fmt.Errorf("signal: the payload of %s: %s", typ, fault)
	}
	return nil
}

func fits(s string, most int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most
}

// shape is what a closed object looks like: its fields, the required ones first.
type shape struct {
	required int
	fields   []field
}

type field struct {
	name string
	kind kind
}

// kind is a kind of value: what it is called, and whether a JSON text is one.
type kind struct {
	name string
	is   func(json.RawMessage) bool
}

var (
	text    = kind{"a string", func(v json.RawMessage) bool { return v[0] == '"' }}
	truth   = kind{"true or false", func(v json.RawMessage) bool { return v[0] == 't' || v[0] == 'f' }}
	object  = kind{"an object", isObject}
	count   = kind{"a whole number from 0 on", isCount}
	number  = kind{"a number", func(v json.RawMessage) bool { _, ok := numberOf(v); return ok }}
	amount  = kind{"a number from 0 on", func(v json.RawMessage) bool { f, ok := numberOf(v); return ok && f >= 0 }}
	state   = oneOf(AgentIdle, AgentThinking, AgentActing, AgentWaiting, AgentDone, AgentError)
	grade   = oneOf(SeverityWarning, SeverityError, SeverityCritical)
	content = oneOf(ContentText, ContentCode, ContentMarkdown)
	point   = closed("a point with x and y", shape{2, []field{{"x", number}, {"y", number}}})
	rect    = closed("a rectangle with x, y, w and h", shape{4, []field{{"x", number}, {"y", number}, {"w", amount}, {"h", amount}}})
)

// shapes are those of the schema. A test holds the one to the other.
var shapes = map[string]shape{
	"task_dispatch":      {3, []field{{"taskId", text}, {"from", text}, {"to", text}, {"description", text}}},
	"tool_call":          {2, []field{{"toolName", text}, {"agentId", text}, {"callId", text}, {"input", object}}},
	"tool_result":        {3, []field{{"toolName", text}, {"agentId", text}, {"success", truth}, {"callId", text}, {"output", object}}},
	"token_usage":        {3, []field{{"agentId", text}, {"promptTokens", count}, {"completionTokens", count}, {"model", text}, {"cost", amount}}},
	"agent_state_change": {3, []field{{"agentId", text}, {"from", state}, {"to", state}, {"reason", text}}},
	"error":              {2, []field{{"message", text}, {"severity", grade}, {"agentId", text}, {"code", text}}},
	"completion":         {2, []field{{"taskId", text}, {"success", truth}, {"agentId", text}, {"result", text}}},
	"text_delta":         {2, []field{{"agentId", text}, {"content", text}, {"contentType", content}, {"index", count}}},
	"thinking":           {2, []field{{"agentId", text}, {"content", text}}},
	"user.click":         {1, []field{{"target", text}, {"position", point}}},
	"user.move":          {2, []field{{"entityId", text}, {"toSlot", text}, {"toZone", text}}},
	"user.zone":          {1, []field{{"bounds", rect}, {"intent", text}}},
	"user.command":       {2, []field{{"entityId", text}, {"action", text}, {"params", object}}},
	"user.point":         {1, []field{{"position", point}, {"zone", text}}},
}

// onChannel are the fields that any well-known payload may have besides.
var onChannel = []field{{"channel", text}, {"channelLabel", text}, {"sessionKey", text}, {"_meta", object}}

// fault says what is wrong with the payload of a well-known type.
func (s shape) fault(payload json.RawMessage) string { return s.check(payload, onChannel) }

func (s shape) check(object json.RawMessage, extra []field) string {
	var seen uint64 // one bit for each required field
	for name, value := range Members(object) {
		i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == string(name) })
		var f field
		switch j := slices.IndexFunc(extra, func(f field) bool { return f.name == string(name) }); {
		case i >= 0:
			f = s.fields[i]
			seen |= 1 << i
		case j >= 0:
			f = extra[j]
		default:
			return fmt.Sprintf("%.64q is not among its fields", name)
		}
		if !f.kind.is(value) {
			return f.name + " has to be " + f.kind.name
		}
	}
	for i, f := range s.fields[:s.required] {
		if seen&(1<<i) == 0 {
			return f.name + " is missing"
		}
	}
	return ""
}

func closed(name string, s shape) kind {
	return kind{name, func(v json.RawMessage) bool { return isObject(v) && s.check(v, nil) == "" }}
}

func oneOf[T ~string](values ...T) kind {
	k := kind{"one of", nil}
	for _, v := range values {
		k.name += " " + string(v)
	}
	k.is = func(v json.RawMessage) bool {
		if v[0] != '"' {
			return false
		}
		word := string(unquote(v))
		return slices.ContainsFunc(values, func(one T) bool { return string(one) == word })
	}
	return k
}

func isObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }

// isCount wants the digits of a whole number: 1.0 and 1e3 are whole as well for the schema, but no Go type reads them.
func isCount(v json.RawMessage) bool {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return err == nil && n >= 0 && n <= maxCount
}

// numberOf reads a number that a float64 can hold.
func numberOf(v json.RawMessage) (float64, bool) {
	if v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}
