package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/turn"
	"vela/turn/tool"
)

func user(text string) Message { return Message{Role: turn.User, Text: text} }

func assistant(text string, calls ...tool.Call) Message {
	return Message{Role: turn.Assistant, Text: text, Calls: calls}
}

func results(all ...Result) Message { return Message{Role: turn.User, Results: all} }

func use(id, output string, success bool) turn.ToolUse {
	return turn.ToolUse{CallID: id, Name: "clock", Input: json.RawMessage(`{"a":1}`), Output: json.RawMessage(output), Success: success}
}

// in is a call with its place in the answer.
func in(round, after int, u turn.ToolUse) turn.ToolUse {
	u.Round, u.After = round, after
	return u
}

func clock(id string) tool.Call {
	return tool.Call{ID: id, Name: "clock", Input: json.RawMessage(`{"a":1}`)}
}

func TestHistoryBecomesMessages(t *testing.T) {
	asked := func(text string) turn.Message { return turn.Message{Role: turn.User, Text: text} }
	said := func(text string, tools ...turn.ToolUse) turn.Message {
		return turn.Message{Role: turn.Assistant, Text: text, Tools: tools}
	}
	noon := Result{CallID: "c", Name: "clock", Content: "noon"}
	for name, c := range map[string]struct {
		history []turn.Message
		want    [][]Message
	}{
		"nothing": {},
		"words":   {[]turn.Message{asked("a"), said("b"), asked("c"), said("d")}, [][]Message{{user("a"), assistant("b")}, {user("c"), assistant("d")}}},
		"a tool": {
			[]turn.Message{asked("a"), said("b", use("c", `{"content":"noon"}`, true))},
			[][]Message{{user("a"), assistant("", clock("c")), results(noon), assistant("b")}},
		},
		"no answer": {
			[]turn.Message{asked("a"), asked("b"), said("c")},
			[][]Message{{user("a"), assistant(noteUnanswered)}, {user("b"), assistant("c")}},
		},
		"interrupted": {
			[]turn.Message{asked("a"), {Role: turn.Assistant, Text: "Once", Interrupted: true}, asked("b"), said("c")},
			[][]Message{{user("a"), assistant("Once\n" + noteInterrupted)}, {user("b"), assistant("c")}},
		},
		"stopped in a tool": {
			[]turn.Message{asked("a"), said("", use("c", ``, false))},
			[][]Message{{user("a"), assistant("", clock("c")), results(Result{"c", "clock", noteNoResult, true}), assistant(noteUnanswered)}},
		},
		"begins with the assistant": {
			[]turn.Message{said("hello"), asked("a"), said("b")},
			[][]Message{{user(noteOpening), assistant("hello")}, {user("a"), assistant("b")}},
		},
		"two answers": {
			[]turn.Message{asked("a"), said("b"), said("c"), said("d", use("c", `{"content":"noon"}`, true))},
			[][]Message{{user("a"), assistant("b\nc", clock("c")), results(noon), assistant("d")}},
		},
		"rounds": {
			[]turn.Message{asked("a"), said("Let me look.\nAh, two.\nIt is noon.", in(1, 12, use("c", `{"content":"noon"}`, true)),
				in(2, 21, use("d", `{"content":"one"}`, true)), in(2, 21, use("e", `{"content":"two"}`, true)), in(3, 21, use("f", ``, true)))},
			[][]Message{{
				user("a"), assistant("Let me look.", clock("c")), results(noon),
				assistant("Ah, two.", clock("d"), clock("e")), results(Result{"d", "clock", "one", false}, Result{"e", "clock", "two", false}),
				assistant("", clock("f")), results(Result{"f", "clock", noteNotKept, false}), assistant("It is noon."),
			}},
		},
		"rounds that nobody told of": {
			[]turn.Message{asked("a"), said("One. Two.", in(0, 4, use("c", `{"content":"noon"}`, true)), in(0, 9, use("d", `{"content":"one"}`, true)))},
			[][]Message{{
				user("a"), assistant("One.", clock("c")), results(noon), assistant("Two.", clock("d")), results(Result{"d", "clock", "one", false}),
				assistant(noteNoMore),
			}},
		},
		"rounds of an answer that was heard in part": {
			[]turn.Message{asked("a"), {Role: turn.Assistant, Text: "Let me", Written: "Let me look. Found.", Interrupted: true, Tools: []turn.ToolUse{
				in(1, 12, use("c", `{"content":"noon"}`, true)), in(2, 12, use("d", ``, false)),
			}}},
			[][]Message{{
				user("a"), assistant("Let me", clock("c")), results(noon), assistant("", clock("d")), results(Result{"d", "clock", noteNoResult, true}),
				assistant(noteInterrupted),
			}},
		},
		"words that are not how the answer begins": {
			[]turn.Message{asked("a"), {Role: turn.Assistant, Text: "ää", Written: "Let me look.", Tools: []turn.ToolUse{in(1, 1, use("c", `{"content":"noon"}`, true))}}},
			[][]Message{{user("a"), assistant("", clock("c")), results(noon), assistant("ää")}},
		},
		"ids that are taken": {
			[]turn.Message{asked("a"), said("b", use("c", `{"content":"noon"}`, true), use("c", `{"content":"noon"}`, true), use("", `{"content":"noon"}`, true))},
			[][]Message{{user("a"), assistant("", clock("c"), clock("c_2"), clock("call")), results(noon, Result{"c_2", "clock", "noon", false}, Result{"call", "clock", "noon", false}), assistant("b")}},
		},
	} {
		if got := exchanges(c.history, ids{}, 1000); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestWhatIsKeptOfAResult(t *testing.T) {
	for output, want := range map[string]string{
		``:                                noteNotKept,
		`{"content":"noon"}`:              "noon",
		`{"error":"no clock"}`:            "no clock",
		`{"content":"a","error":"b"}`:     "a",
		`{"content":"","error":"b"}`:      "b",
		`{"content":"noon","diff":"-a"}`:  "noon",
		`{"content":[1],"error":{}}`:      `{"content":[1],"error":{}}`,
		`{"Content":"noon","diff":"-a"}`:  `{"Content":"noon","diff":"-a"}`,
		`{"content":""}`:                  `{"content":""}`,
		`{"exit":1,"content":"the text"}`: "the text",
		`[1]`:                             `[1]`,
	} {
		if got := kept(use("c", output, true)); got != want {
			t.Errorf("%s: kept %q, want %q", output, got, want)
		}
	}
	if got := kept(use("c", ``, false)); got != noteNoResult {
		t.Errorf("of a failure without an output: kept %q", got)
	}
}

func TestInputsAreObjects(t *testing.T) {
	for input, want := range map[string]string{
		``: `{}`, ` `: `{}`, `{}`: `{}`, "\n {\"a\":1}": "\n {\"a\":1}", `{"a":`: `{}`, `[1]`: `{}`, `"{}"`: `{}`, `null`: `{}`, `{}{}`: `{}`,
	} {
		if got := object(json.RawMessage(input)); string(got) != want {
			t.Errorf("%q: %q, want %q", input, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
	}{
		{"", 0}, {"short", 5}, {"short", 4}, {strings.Repeat("a", 1000), 200}, {strings.Repeat("ä", 1000), 201}, {strings.Repeat("👋", 1000), 203},
		{"\xff\xfe", 10}, {strings.Repeat("\xff", 1000), 200}, {strings.Repeat("a", 1000), 1}, {strings.Repeat("a", 1000), 0},
	} {
		got := shorten(c.text, c.limit)
		if len(got) > c.limit || !utf8.ValidString(got) {
			t.Errorf("%.10q… to %d bytes: %q", c.text, c.limit, got)
		}
		if whole := len(c.text) <= c.limit && utf8.ValidString(c.text); whole != (got == c.text) {
			t.Errorf("%.10q… to %d bytes: %q", c.text, c.limit, got)
		}
	}
	text := "begin" + strings.Repeat("-", 1000) + "end"
	if got := shorten(text, 200); !strings.HasPrefix(got, "begin-") || !strings.HasSuffix(got, "-end") || !strings.Contains(got, "200 of 1008 bytes") {
		t.Errorf("%q", got)
	}
}
