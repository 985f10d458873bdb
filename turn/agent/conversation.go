package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"vela/turn"
	"vela/turn/tool"
)

// exchanges makes messages of a history: each exchange is what the user said and all that answered it. Each begins with
// the user and ends with words of the assistant, so that any of them can be left out; a call and its result are in the
// same one, side by side.
func exchanges(history []turn.Message, ids ids, limit int) [][]Message {
	var all [][]Message
	for _, m := range history {
		if m.Role == turn.User {
			all = append(all, []Message{{Role: turn.User, Text: m.Text}})
			continue
		}
		if len(all) == 0 {
			all = append(all, []Message{{Role: turn.User, Text: noteOpening}})
		}
		last := &all[len(all)-1]
		*last = answered(*last, m, ids, limit)
	}
	for i, e := range all {
		if e[len(e)-1].Role == turn.User {
			all[i] = append(e, Message{Role: turn.Assistant, Text: noteUnanswered})
		}
	}
	return all
}

// answered is the exchange with one more message of the assistant: round by round what it said, what it called and what
// came of that, and then the rest of what it said.
func answered(e []Message, m turn.Message, ids ids, limit int) []Message {
	heard := 0 // how much of the text stands in the exchange
	for _, round := range rounds(m.Tools) {
		end := before(m, round[0], heard)
		did, results := Message{Role: turn.Assistant, Text: strings.TrimSpace(m.Text[heard:end])}, Message{Role: turn.User}
		for _, u := range round {
			id := ids.claim(u.CallID)
			did.Calls = append(did.Calls, tool.Call{ID: id, Name: u.Name, Input: object(u.Input)})
			results.Results = append(results.Results, Result{CallID: id, Name: u.Name, Content: shorten(kept(u), limit), Failed: !u.Success})
		}
		e, heard = append(spoke(e, did), results), end
	}
	if m.Text != "" {
		e = spoke(e, Message{Role: turn.Assistant, Text: ending(m, heard)})
	}
	return e
}

// ending is the rest of what was heard, behind so many bytes that stand before the last calls, and how it ended.
func ending(m turn.Message, heard int) string {
	rest := m.Text[heard:]
	if heard > 0 {
		rest = strings.TrimSpace(rest)
	}
	switch {
	case m.Interrupted:
		return strings.TrimPrefix(rest+"\n"+noteInterrupted, "\n")
	case rest == "":
		return noteNoMore
	}
	return rest
}

// rounds are the calls of an answer as its model made them: those of one round together. Where something was said between
// two, they are of two, even if their engine tells of no rounds.
func rounds(tools []turn.ToolUse) [][]turn.ToolUse {
	var all [][]turn.ToolUse
	for i, u := range tools {
		if i == 0 || u.Round != tools[i-1].Round || u.After != tools[i-1].After {
			all = append(all, nil)
		}
		last := &all[len(all)-1]
		*last = append(*last, u)
	}
	return all
}

// before is how much of what was heard had been said before a call, at least from: up to all of it, where the answer was
// cut earlier. Where what was heard is not how the answer begins, nobody can tell, and all of it follows the calls.
func before(m turn.Message, u turn.ToolUse, from int) int {
	if !strings.HasPrefix(m.Written, m.Text) && m.Written != "" {
		return from
	}
	return max(from, min(u.After, len(m.Text)))
}

// spoke is the exchange with a message of the assistant, which becomes one with the message before if that is the
// assistant's too: the two sides take turns. The one before has no calls, since results follow those.
func spoke(e []Message, m Message) []Message {
	before := &e[len(e)-1]
	if before.Role != turn.Assistant {
		return append(e, m)
	}
	if m.Text != "" {
		before.Text += "\n" + m.Text
	}
	before.Calls = m.Calls
	return e
}

// kept is what the history knows of a result, in words: the content or the error that the output holds, or all of it.
func kept(u turn.ToolUse) string {
	switch {
	case len(u.Output) == 0 && u.Success:
		return noteNotKept
	case len(u.Output) == 0:
		return noteNoResult
	}
	var output map[string]json.RawMessage
	if json.Unmarshal(u.Output, &output) == nil {
		for _, key := range []string{"content", "error"} {
			var text string
			if json.Unmarshal(output[key], &text) == nil && text != "" {
				return text
			}
		}
	}
	return string(u.Output)
}

// object is what a model wrote as a tool's input, or {} where that is no JSON object: no vendor takes it back otherwise.
func object(input json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimLeft(input, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(input) {
		return input
	}
	return json.RawMessage("{}")
}

// ids are the ids of the calls in one prompt. Models number theirs from 0 in every answer, or not at all, and vendors
// refuse a prompt in which two are the same.
type ids map[string]bool

// claim is the id, or a new one where it is taken.
func (s ids) claim(id string) string {
	free := orNote(id, "call")
	for n := 2; s[free]; n++ {
		free = fmt.Sprintf("%s_%d", orNote(id, "call"), n)
	}
	s[free] = true
	return free
}

// orNote is the text, or what stands for it when it is empty.
func orNote(text, note string) string {
	if text == "" {
		return note
	}
	return text
}

// shorten is a text of at most limit bytes, which is UTF-8: its beginning and its end, and a note of what is missing.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "?")
	}
	note := fmt.Sprintf("\n[%d of %d bytes are shown, the middle is left out]\n", limit, len(text))
	note = note[:min(len(note), limit)]
	half := (limit - len(note)) / 2
	return strings.ToValidUTF8(text[:half]+note+text[len(text)-half:], "")
}
