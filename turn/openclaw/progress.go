package openclaw

import (
	"encoding/json"
	"strings"

	"vela/protocol/signal"
)

// progress is how far one run has come.
type progress struct {
	agent  string
	model  string
	tokens int

	answer   running // of the message being written
	item     string  // that message
	before   string  // the message before the last tool call
	thought  running
	preamble running // text before a tool call, which comes as an item of its own
	aside    string  // that item
	pending  string  // of it, not yet told
	spoke    bool    // something was told since the last tool call
	open     bool    // what was told ends in the middle of a line

	calls   map[string]string // names of the tools called, by call id
	done    map[string]bool   // call ids with a result
	started bool
	ended   bool

	out []signal.Payload // what the event at hand comes to
}

// maxCalls bounds how many tool calls of one run are told apart.
const maxCalls = 1024

// next says what one event comes to.
func (p *progress) next(ev runEvent) []signal.Payload {
	if p.ended {
		return nil
	}
	p.agent = first(ev.AgentID, p.agent, agentOf(ev.SessionKey), "openclaw")
	p.out = nil
	if ev.State != "" {
		p.chat(ev)
		return p.out
	}
	var d agentData
	if len(ev.Data) > 0 && lenient(ev.Data, &d) != nil {
		return nil
	}
	switch ev.Stream {
	case "lifecycle":
		p.lifecycle(ev, d)
	case "assistant":
		p.assistant(d)
	case "thinking":
		if s := p.thought.grow(d.Text, d.Delta); s != "" {
			p.tell(signal.Thinking{AgentID: p.agent, Content: s})
		}
	case "item":
		p.itemEvent(d)
	case "tool":
		p.toolEvent(d)
	case "usage":
		p.usage(d.OutputTokens)
	}
	return p.out
}

func (p *progress) tell(payload signal.Payload) { p.out = append(p.out, payload) }

// agentOf is the agent in a session key of the form agent:NAME:REST.
func agentOf(key string) string {
	parts := strings.SplitN(key, ":", 3)
	if len(parts) == 3 && parts[0] == "agent" {
		return parts[1]
	}
	return ""
}

// chat takes from the chat what agent events do not say: the end, if theirs was not final, and the answer, if there was
// no agent in it, as for a question that was added to a run before.
func (p *progress) chat(ev runEvent) {
	switch ev.State {
	case "final":
		var text strings.Builder
		for _, c := range ev.Message.Content {
			if c.Type == "text" {
				text.WriteString(c.Text)
			}
		}
		p.complete(ev.RunID, text.String())
	case "aborted":
		p.stop(ev.RunID)
	case "error":
		p.fail(ev.ErrorDetail.FailoverReason, ev.ErrorMessage)
	}
}

// lifecycle: an end or an error is final if it says so, or if the run was stopped. Otherwise OpenClaw may try again, and
// the chat has the last word.
func (p *progress) lifecycle(ev runEvent, d agentData) {
	switch {
	case d.Phase == "start" || d.Phase == "started":
		if !p.started {
			p.started = true
			p.tell(signal.AgentStateChange{AgentID: p.agent, From: signal.AgentIdle, To: signal.AgentActing})
		}
	case d.Phase == "model":
		p.model = first(d.Model, p.model)
		p.thought = running{} // each request to the model thinks anew
	case d.Aborted && (d.Phase == "end" || d.Phase == "error"):
		p.stop(ev.RunID)
	case d.Phase == "end" && d.ExecutionSettled:
		p.complete(ev.RunID, d.reply())
	case d.Phase == "error" && d.ExecutionSettled:
		p.fail(d.Observation.FailoverReason, first(text(d.Error), d.Message))
	}
}

func (p *progress) assistant(d agentData) {
	p.flush()
	if d.ItemID != p.item {
		p.item, p.answer = d.ItemID, running{}
	}
	p.say(p.answer.grow(d.Text, d.Delta), p.answer.begun())
}

// say tells text. A message that begins is set off from the one before.
func (p *progress) say(s string, begins bool) {
	if s == "" {
		return
	}
	if begins && p.open {
		s = "\n\n" + s
	}
	p.open, p.spoke = !strings.HasSuffix(s, "\n"), true
	p.tell(signal.TextDelta{AgentID: p.agent, Content: s})
}

// itemEvent: a preamble is told when it is whole, since what comes before may be taken back. A tool that only items tell
// of, as of somebody else's run, is told when it ends: where both tell, the tool's own event has the input.
func (p *progress) itemEvent(d agentData) {
	switch {
	case d.Kind == "preamble":
		if d.ItemID != p.aside {
			p.flush()
			p.aside, p.preamble = d.ItemID, running{}
		}
		p.pending = d.ProgressText
		if d.Phase == "end" {
			p.flush()
		}
	case d.Kind == "tool" && d.Phase == "start":
		p.flush()
	case d.Kind == "tool" && d.Phase == "end":
		p.result(d, d.Status == "completed", nil)
	}
}

// flush tells what is left of a preamble. A text that took its time was told as the answer before OpenClaw knew it for a
// preamble; then only the rest of it is new.
func (p *progress) flush() {
	if told := strings.Join(strings.Fields(p.answer.said), " "); p.preamble.said == "" && strings.HasPrefix(p.pending, told) {
		p.preamble = running{told, p.answer.tells}
	}
	s := p.preamble.grow(p.pending, "")
	p.pending = ""
	p.say(s, p.preamble.begun())
}

func (p *progress) toolEvent(d agentData) {
	switch d.Phase {
	case "start":
		p.call(d)
	case "result", "end", "completed", "done":
		ok := d.IsError == nil || !*d.IsError
		if d.Success != nil {
			ok = *d.Success
		}
		output := d.Result
		if len(output) == 0 {
			output = d.Output
		}
		p.result(d, ok, output)
	}
}

func (p *progress) call(d agentData) {
	p.flush()
	id := d.call()
	if _, called := p.calls[id]; called || len(p.calls) >= maxCalls {
		return
	}
	if p.calls == nil {
		p.calls, p.done = map[string]string{}, map[string]bool{}
	}
	p.calls[id] = d.tool()
	p.before = first(p.answer.said, p.preamble.said)
	p.spoke, p.answer, p.thought = false, running{}, running{}
	p.tell(signal.ToolCall{ToolName: d.tool(), AgentID: p.agent, CallID: id, Input: object(d.Args)})
}

func (p *progress) result(d agentData, ok bool, output json.RawMessage) {
	id := d.call()
	p.call(d) // unless it was told
	name, called := p.calls[id]
	if !called || p.done[id] {
		return
	}
	p.done[id] = true
	p.tell(signal.ToolResult{ToolName: name, AgentID: p.agent, CallID: id, Success: ok, Output: object(output)})
}

// usage: OpenClaw counts the tokens of the whole run, a signal those of one request.
func (p *progress) usage(total int) {
	if total < p.tokens { // it has begun anew
		p.tokens = 0
	}
	if total > p.tokens {
		p.tell(signal.TokenUsage{AgentID: p.agent, CompletionTokens: total - p.tokens, Model: p.model})
		p.tokens = total
	}
}

// complete ends the run well. The whole answer comes along; it is told if nothing was since the last tool call.
func (p *progress) complete(id, answer string) {
	p.flush()
	if !p.spoke && strings.TrimSpace(answer) != strings.TrimSpace(p.before) {
		p.say(answer, true)
	}
	p.end(signal.Completion{TaskID: id, AgentID: p.agent, Success: true})
}

func (p *progress) stop(id string) {
	p.flush()
	p.end(signal.Completion{TaskID: id, AgentID: p.agent})
}

func (p *progress) fail(reason, words string) {
	p.end(signal.Error{AgentID: p.agent, Code: reason, Message: first(words, "the run failed"), Severity: signal.SeverityError})
}

// end tells the last signal, and lets go of everything else.
func (p *progress) end(last signal.Payload) {
	p.tell(last)
	*p = progress{ended: true, out: p.out}
}

// ends says whether a signal is the last one of its run.
func ends(p signal.Payload) bool {
	switch p.(type) {
	case signal.Completion, signal.Error:
		return true
	}
	return false
}

// text is a JSON string, or the message of a JSON object.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &o) // absent words are none
	return o.Message
}

// maxObject bounds what is passed on of a tool's input or output, in bytes.
const maxObject = 256 << 10

// object is a JSON object: raw itself, or raw in one. What is too long gives way to its length.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var fields any = map[string]any{"content": raw}
	switch {
	case len(raw) > maxObject:
		fields = map[string]any{"omitted": "too long", "bytes": len(raw)}
	case raw[0] == '{':
		return raw
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return b
}
