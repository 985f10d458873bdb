package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"vela/turn/tool"
)

// fake is a tool that answers with its own name and its input.
type fake struct {
	name     string
	readOnly bool
	err      error
}

func (f fake) Definition() tool.Definition {
	return tool.Definition{Name: f.name, Parameters: json.RawMessage(`{"type":"object"}`), ReadOnly: f.readOnly}
}

func (f fake) Run(_ context.Context, input json.RawMessage) (tool.Result, error) {
	return tool.Result{Content: f.name + string(input)}, f.err
}

func set(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSetRefusesNames(t *testing.T) {
	for name, tools := range map[string][]tool.Tool{
		"twice":      {fake{name: "a"}, fake{name: "a"}},
		"empty":      {fake{}},
		"a space":    {fake{name: "a b"}},
		"a dot":      {fake{name: "a.b"}},
		"not ASCII":  {fake{name: "é"}},
		"a newline":  {fake{name: "a\n"}},
		"65":         {fake{name: strings.Repeat("a", 65)}},
		"parameters": {noParameters{fake{name: "a"}}},
	} {
		if _, err := tool.NewSet(tools...); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	set(t, fake{name: strings.Repeat("a", 64)}, fake{name: "A-b_9"})
}

type noParameters struct{ fake }

func (n noParameters) Definition() tool.Definition { return tool.Definition{Name: n.name} }

func TestCall(t *testing.T) {
	broken := errors.New("broken")
	s := set(t, fake{name: "a"}, fake{name: "b", err: broken})
	for _, c := range []struct {
		name, input, want, err string
	}{
		{"a", `{"x":1}`, `a{"x":1}`, ""},
		{"a", ``, `a{}`, ""},
		{"a", " \n", `a{}`, ""},
		{"b", `{}`, "", "broken"},
		{"c", `{}`, "", `There is no tool with the name "c"`},
		{"c\n" + strings.Repeat("x", 1000), `{}`, "", `There is no tool with the name "c\nxxx`},
		{"a", `[]`, "", "is not a JSON object"},
		{"a", `null`, "", "is not a JSON object"},
		{"a", `"{}"`, "", "is not a JSON object"},
		{"a", `{"x":`, "", "is not a JSON object"},
		{"a", `{} {}`, "", "is not a JSON object"},
	} {
		r, err := s.Call(t.Context(), tool.Call{Name: c.name, Input: json.RawMessage(c.input)})
		if c.err == "" && (err != nil || r.Content != c.want) {
			t.Errorf("%s %s: %q, %v", c.name, c.input, r.Content, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || len(err.Error()) > 300) {
			t.Errorf("%s %s: error %v", c.name, c.input, err)
		}
	}
}

func TestDefinitionsKeepTheirOrderAndAreTheCallers(t *testing.T) {
	s := set(t, fake{name: "b"}, fake{name: "a"})
	s.Definitions()[0].Name = "changed"
	if got := names(s); got != "b a" {
		t.Errorf("the tools are %s", got)
	}
}

func names(c tool.Caller) string {
	var all []string
	for _, d := range c.Definitions() {
		all = append(all, d.Name)
	}
	return strings.Join(all, " ")
}

func TestJoinPrefersTheEarlier(t *testing.T) {
	j := tool.Join(set(t, fake{name: "a"}), set(t, fake{name: "a", err: errors.New("the later")}, fake{name: "b"}))
	if got := names(j); got != "a b" {
		t.Errorf("the tools are %s", got)
	}
	for name, want := range map[string]string{"a": "a{}", "b": "b{}"} {
		if r, err := j.Call(t.Context(), tool.Call{Name: name}); err != nil || r.Content != want {
			t.Errorf("%s: %q, %v", name, r.Content, err)
		}
	}
	if _, err := j.Call(t.Context(), tool.Call{Name: "c"}); err == nil {
		t.Error("c was found")
	}
}
