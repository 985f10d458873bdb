package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/turn"
	"vela/turn/tool"
)

func TestRules(t *testing.T) {
	patterns := map[string]tool.Rule{
		"bash": tool.Allow, "github_*": tool.Allow, "github_delete_*": tool.Deny, "read_file": "maybe",
		"x?": tool.Allow, "?y": tool.Deny,
	}
	for _, c := range []struct {
		rules tool.Rules
		name  string
		want  tool.Rule
	}{
		{tool.Rules{}, "read_file", tool.Allow},
		{tool.Rules{}, "glob", tool.Allow},
		{tool.Rules{}, "grep", tool.Allow},
		{tool.Rules{}, "write_file", tool.Ask},
		{tool.Rules{}, "edit_file", tool.Ask},
		{tool.Rules{}, "bash", tool.Ask},
		{tool.Rules{}, "github_read", tool.Ask},
		{tool.Rules{Default: tool.Deny}, "read_file", tool.Deny},
		{tool.Rules{Default: tool.Allow}, "bash", tool.Allow},
		{tool.Rules{Default: "yes"}, "bash", tool.Deny},
		{tool.Rules{Tools: patterns}, "bash", tool.Allow},
		{tool.Rules{Tools: patterns}, "write_file", tool.Ask},
		{tool.Rules{Tools: patterns}, "github_list", tool.Allow},
		{tool.Rules{Tools: patterns}, "github_delete_repo", tool.Deny},
		{tool.Rules{Tools: patterns}, "read_file", tool.Deny},
		{tool.Rules{Tools: patterns}, "xy", tool.Deny},
		{tool.Rules{Tools: patterns, Default: tool.Deny}, "grep", tool.Deny},
	} {
		if got := c.rules.For(c.name); got != c.want {
			t.Errorf("%+v: %s is %s, want %s", c.rules, c.name, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, r := range []tool.Rules{
		{Default: "yes"}, {Tools: map[string]tool.Rule{"a": ""}}, {Tools: map[string]tool.Rule{"[": tool.Ask}}, {Tools: map[string]tool.Rule{"": tool.Ask}},
	} {
		if r.Validate() == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	if err := (tool.Rules{Default: tool.Ask, Tools: map[string]tool.Rule{"a_*": tool.Deny}}).Validate(); err != nil {
		t.Error(err)
	}
}

// asker answers questions and keeps them.
type asker struct {
	answer turn.Answer
	err    error
	asked  []turn.Question
}

func (a *asker) ask(_ context.Context, q turn.Question) (turn.Answer, error) {
	a.asked = append(a.asked, q)
	return a.answer, a.err
}

func TestApprove(t *testing.T) {
	gone := errors.New("the turn is over")
	rules := tool.Rules{Tools: map[string]tool.Rule{"never": tool.Deny}}
	for _, c := range []struct {
		name, input string
		asker       asker
		asked       int
		want        string // of the error; empty: it ran
	}{
		{"read_file", `{}`, asker{}, 0, ""},
		{"write_file", `{}`, asker{answer: turn.Answer{Allow: true}}, 1, ""},
		{"write_file", `{}`, asker{}, 1, "The user did not allow write_file."},
		{"write_file", `{}`, asker{answer: turn.Answer{Remember: true}}, 1, "The user did not allow write_file."},
		{"write_file", `{}`, asker{answer: turn.Answer{Allow: true}, err: gone}, 1, "the turn is over"},
		{"never", `{}`, asker{answer: turn.Answer{Allow: true}}, 0, "The tool never is switched off."},
		{"missing", `{}`, asker{answer: turn.Answer{Allow: true}}, 0, "There is no tool"},
		{"write_file", `[]`, asker{answer: turn.Answer{Allow: true}}, 0, "not a JSON object"},
	} {
		s := set(t, fake{name: "read_file", readOnly: true}, fake{name: "write_file"}, fake{name: "never"})
		r, err := tool.Approve(s, rules, c.asker.ask).Call(t.Context(), tool.Call{ID: "9", Name: c.name, Input: json.RawMessage(c.input)})
		if c.want == "" && (err != nil || r.Content != c.name+c.input) {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || r.Content != "") {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
		if len(c.asker.asked) != c.asked {
			t.Errorf("%+v: %d questions", c, len(c.asker.asked))
		}
		if c.asked == 1 && (c.asker.asked[0].CallID != "9" || c.asker.asked[0].Name != c.name) {
			t.Errorf("asked %+v", c.asker.asked[0])
		}
		if c.asker.err != nil && !errors.Is(err, gone) {
			t.Errorf("the error is %v", err)
		}
	}
	if got := names(tool.Approve(set(t, fake{name: "a"}, fake{name: "never"}), rules, nil)); got != "a" {
		t.Errorf("the model is told of %s", got)
	}
}

// A tool that is not listed does not run, even if its caller would run it: nobody could have been asked about it.
func TestOnlyWhatIsListedRuns(t *testing.T) {
	a := asker{answer: turn.Answer{Allow: true}}
	_, err := tool.Approve(hidden{set(t, fake{name: "read_file"})}, tool.Rules{}, a.ask).Call(t.Context(), tool.Call{Name: "read_file"})
	if err == nil || !strings.Contains(err.Error(), "There is no tool") {
		t.Error(err)
	}
}

type hidden struct{ tool.Caller }

func (hidden) Definitions() []tool.Definition { return nil }

func TestNobodyToAskIsANo(t *testing.T) {
	_, err := tool.Approve(set(t, fake{name: "bash"}), tool.Rules{}, nil).Call(t.Context(), tool.Call{Name: "bash"})
	if err == nil || err.Error() != "The user did not allow bash." {
		t.Error(err)
	}
}

func TestQuestion(t *testing.T) {
	for _, c := range []struct {
		tool    fake
		input   string
		risky   bool
		summary string
	}{
		{fake{name: "write_file"}, `{"path":"notes/todo.md","content":"a\nb\nc"}`, true, "Write 3 lines to notes/todo.md"},
		{fake{name: "write_file"}, `{"path":"a","content":"a\n"}`, true, "Write 1 line to a"},
		{fake{name: "edit_file"}, `{"path":"a","old_string":"x\ny","new_string":"z"}`, true, "Edit a: 1 line for 2"},
		{fake{name: "edit_file"}, `{"path":"a","old_string":"x","new_string":"","replace_all":true}`, true, "Edit a: 0 lines for 1 wherever they are"},
		{fake{name: "bash"}, `{"command":"go test ./..."}`, true, "Run: go test ./..."},
		{fake{name: "bash"}, `{"command":"ls\n\u001b[2K\u202erm\u0000\u200b -rf"}`, true, `Run: ls\n\x1b[2K\u202erm\x00\u200b -rf`},
		{fake{name: "bash"}, `{"command":5}`, true, `Call bash with {"command":5}`},
		{fake{name: "read_file", readOnly: true}, `{"path":"a"}`, false, "Read a"},
		{fake{name: "glob", readOnly: true}, `{"pattern":"*.go","path":"b"}`, false, "List *.go in b"},
		{fake{name: "grep", readOnly: true}, `{"pattern":"x"}`, false, "Search for x"},
		{fake{name: "github_list", readOnly: true}, `{"a":1}`, false, `Call github_list with {"a":1}`},
		{fake{name: "github_drop"}, `{}`, true, `Call github_drop with {}`},
	} {
		a := asker{}
		_, err := tool.Approve(set(t, c.tool), tool.Rules{Default: tool.Ask}, a.ask).Call(t.Context(), tool.Call{Name: c.tool.name, Input: json.RawMessage(c.input)})
		if err == nil || len(a.asked) != 1 || a.asked[0].Summary != c.summary || a.asked[0].Risky != c.risky {
			t.Errorf("%s %s: asked %+v", c.tool.name, c.input, a.asked)
		}
	}
}

// What does not fit into a question is counted in it: nobody agrees to an end that they did not see unknowingly.
func TestQuestionIsBounded(t *testing.T) {
	for name, command := range map[string]string{
		"letters": strings.Repeat("x", 100_000), "runes": strings.Repeat("€", 100_000), "escapes": strings.Repeat("\x01", 100_000),
	} {
		a := asker{}
		_, _ = tool.Approve(set(t, fake{name: "bash"}), tool.Rules{}, a.ask).Call(t.Context(), tool.Call{Name: "bash", Input: object(t, map[string]string{"command": command})})
		s := a.asked[0].Summary
		if n := utf8.RuneCountInString(s); n > 200 || n < 180 || !strings.HasSuffix(s, " more)") {
			t.Errorf("%s: %d runes, %q", name, n, s)
		}
	}
}
