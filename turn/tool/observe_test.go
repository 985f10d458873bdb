package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/protocol/signal"
	"vela/turn/tool"
)

// returns is a tool that returns what it is told to.
type returns struct {
	fake
	result tool.Result
	ran    func()
}

func (r returns) Run(context.Context, json.RawMessage) (tool.Result, error) {
	if r.ran != nil {
		r.ran()
	}
	return r.result, r.err
}

func observe(t *testing.T, r returns, input string) (signal.ToolCall, signal.ToolResult) {
	t.Helper()
	r.name = "x"
	var seen []signal.Payload
	r.ran = func() {
		if len(seen) != 1 {
			t.Errorf("%d reports before the tool ran, want 1", len(seen))
		}
	}
	o := tool.Observe(set(t, r), "me", func(p signal.Payload) { seen = append(seen, p) })
	_, err := o.Call(t.Context(), tool.Call{ID: "7", Name: "x", Input: json.RawMessage(input)})
	if len(seen) != 2 {
		t.Fatalf("%d reports: %+v", len(seen), seen)
	}
	call, result := seen[0].(signal.ToolCall), seen[1].(signal.ToolResult)
	if call.AgentID != "me" || call.CallID != "7" || call.ToolName != "x" || result.AgentID != "me" || result.CallID != "7" || result.ToolName != "x" {
		t.Errorf("reported %+v and %+v", call, result)
	}
	if result.Success != (err == nil) {
		t.Errorf("success %v, the error is %v", result.Success, err)
	}
	return call, result
}

func TestObserve(t *testing.T) {
	for name, c := range map[string]struct {
		result        tool.Result
		err           error
		input         string
		call, outcome string
	}{
		"content":          {tool.Result{Content: "hello"}, nil, `{"a":1}`, `{"a":1}`, `{"content":"hello"}`},
		"output":           {tool.Result{Content: "hello", Output: json.RawMessage(`{"n":2}`)}, nil, `{}`, `{}`, `{"n":2}`},
		"output no object": {tool.Result{Content: "hello", Output: json.RawMessage(`[2]`)}, nil, ``, `{}`, `{"content":"hello"}`},
		"error":            {tool.Result{Content: "hello"}, errors.New("it broke"), `{}`, `{}`, `{"error":"it broke"}`},
		"cancelled":        {tool.Result{}, fmt.Errorf("x: %w", context.Canceled), `{}`, `{}`, `{"error":"It was stopped."}`},
		"deadline":         {tool.Result{}, context.DeadlineExceeded, `{}`, `{}`, `{"error":"It was stopped, since it took too long."}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := returns{result: c.result}
			r.err = c.err
			call, result := observe(t, r, c.input)
			if string(call.Input) != c.call || string(result.Output) != c.outcome {
				t.Errorf("input %s, output %s", call.Input, result.Output)
			}
		})
	}
}

func TestObserveMakesAnObjectOfAnyInput(t *testing.T) {
	for _, input := range []string{`[1]`, `"text"`, `{"cut":`, "\xff\x00", `null`} {
		var seen signal.ToolCall
		o := tool.Observe(set(t, fake{name: "x"}), "me", func(p signal.Payload) {
			if call, ok := p.(signal.ToolCall); ok {
				seen = call
			}
		})
		if _, err := o.Call(t.Context(), tool.Call{Name: "x", Input: json.RawMessage(input)}); err == nil {
			t.Errorf("%q ran", input)
		}
		var got map[string]string
		if err := json.Unmarshal(seen.Input, &got); err != nil || got["input"] != strings.ToValidUTF8(input, "\uFFFD") {
			t.Errorf("%q was reported as %s", input, seen.Input)
		}
	}
}

// What observers see is bounded as it is on the wire, whatever it is made of; it stays an object of valid strings.
func TestObserveBounds(t *testing.T) {
	many := map[string]string{}
	for i := range 50_000 {
		many[fmt.Sprint(i)] = "x"
	}
	deep, _ := json.Marshal(map[string]any{"nested": map[string]string{"content": strings.Repeat("x", 1<<20)}})
	for name, output := range map[string]json.RawMessage{
		"long":         object(t, map[string]string{"content": strings.Repeat("x", 1<<20)}),
		"of runes":     object(t, map[string]string{"content": strings.Repeat("€", 100_000)}),
		"of escapes":   object(t, map[string]string{"content": strings.Repeat("<\u2028\x01\"\n", 50_000)}),
		"grows":        json.RawMessage(`{"content":"` + strings.Repeat("<", 180_000) + `"}`),
		"two":          object(t, map[string]string{"content": strings.Repeat("x", 120_000), "diff": strings.Repeat("y", 150_000), "path": "p"}),
		"many":         object(t, many),
		"deep":         deep,
		"exactly":      object(t, map[string]string{"content": strings.Repeat("x", 192<<10-len(`{"content":""}`))}),
		"one too many": object(t, map[string]string{"content": strings.Repeat("x", 192<<10-len(`{"content":""}`)+1)}),
	} {
		t.Run(name, func(t *testing.T) {
			_, result := observe(t, returns{result: tool.Result{Output: output}}, `{}`)
			wire, err := json.Marshal(result.Output)
			if err != nil || len(wire) > 192<<10 {
				t.Fatalf("%d bytes, %v", len(wire), err)
			}
			var got map[string]any
			if err := json.Unmarshal(result.Output, &got); err != nil || len(got) == 0 {
				t.Fatal(err)
			}
			content, _ := got["content"].(string)
			if !utf8.ValidString(content) || strings.ContainsRune(content, utf8.RuneError) {
				t.Error("cut within a rune")
			}
			if cut := strings.Contains(content, "… "); cut != (name != "exactly") {
				t.Errorf("says that it was cut: %v", cut)
			}
			if diff, _ := got["diff"].(string); name == "two" && (got["path"] != "p" || len(diff) != 150_000) {
				t.Errorf("kept path %v and %d of the diff", got["path"], len(diff))
			}
			if strings.Contains("long, of runes, of escapes", name) && len(wire) < 188<<10 {
				t.Errorf("only %d bytes are left", len(wire))
			}
		})
	}
}

func TestObserveBoundsInputsAndErrors(t *testing.T) {
	r := returns{}
	r.err = errors.New(strings.Repeat("e", 1<<20))
	call, result := observe(t, r, `{"content":"`+strings.Repeat("c", 1<<20)+`"}`)
	if len(call.Input) > 192<<10 || len(result.Output) > 192<<10 {
		t.Errorf("%d and %d bytes", len(call.Input), len(result.Output))
	}
}

func object(t *testing.T, v map[string]string) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
