package gateway

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What agents have in common stands once: at an anchor, in whichever agent, list or server it is.
func TestFileTakesAnchors(t *testing.T) {
	f, err := parseFile([]byte(`
agents:
  one: &base
    kind: openai
    url: &url http://127.0.0.1:1234/v1
    timeouts: &patient {first_token: 90s}
    tools: &tools
      mcp: &servers [files]
      rules: {"files_*": allow}
  two:
    <<: *base
    label: Two
    timeouts: {connect: 1s}
  three:
    kind: openai
    url: *url
    timeouts: *patient
    tools:
      <<: [*tools, {bash: true, root: .}]
      mcp: *servers
  four: *base
mcp:
  files: &files {command: [files]}
  more: {<<: *files}
`))
	if err != nil {
		t.Fatal(err)
	}
	one, two, three, four := f.agents[0].(*modelAgent), f.agents[1].(*modelAgent), f.agents[2].(*modelAgent), f.agents[3].(*modelAgent)
	if two.URL != one.URL || two.Common.Label != "Two" || two.Timeouts.Connect == 0 || two.Timeouts.FirstToken != 0 || !slices.Equal(two.Tools.MCP, []string{"files"}) {
		t.Errorf("what is merged, and what stands before it: %+v", two)
	}
	if three.URL != one.URL || three.Timeouts != one.Timeouts || !three.Tools.Bash || three.Tools.Rules["files_*"] != "allow" || !slices.Equal(three.Tools.MCP, []string{"files"}) {
		t.Errorf("aliases of a text, a mapping and a list: %+v", three)
	}
	four.Common.name, four.Common.line = one.Common.name, one.Common.line
	if !reflect.DeepEqual(one, four) {
		t.Errorf("an alias of all: %+v, want %+v", four, one)
	}
	if !slices.Equal(f.mcp["more"].Command, []string{"files"}) {
		t.Errorf("servers: %+v", f.mcp)
	}
}

func TestAnchorsThatCannotBe(t *testing.T) {
	bomb := "agents:\n  a0: &a0 {kind: echo, ponder: [x, x, x, x, x, x, x, x, x, x]}\n"
	for i := range 20 {
		bomb += fmt.Sprintf("  a%d: &a%d {fallback: [%s*a%d]}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for text, want := range map[string]string{
		"agents:\n  a: {kind: echo, label: *sk-secret}":                         "line 2: there is no anchor (&) of this name above",
		"agents:\n  a: {kind: echo, label: *later}\n  b: &later {kind: echo}\n": "line 2: there is no anchor",
		"agents:\n  a: &a {kind: *a}":                                           "line 2: there is no anchor",
		"agents:\n  a: {kind: echo, <<: 7}":                                     "line 2: << takes keys",
		"agents:\n  a: &a {kind: echo}\n  b:\n    <<: [*a, [*a]]":               "line 4: << takes keys",
		"agents:\n  a: &a {kind: echo, ponder: no}\n  b: *a":                    "line 2: ponder",
		"agents:\n  a: &a {kind: echo}\n  b:\n    <<: *a\n    url: http:/x":     `line 5: unknown field "url"`,
		"agents:\n  a: {kind: echo}\n---\nagents:\n  b: {kind: echo}\n":         "line 4: a second document begins",
		bomb: "aliases make too much of this file",
	} {
		_, err := parseFile([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "line ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.200s\nis refused with %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "%YAML 1.2\n---\nagents:\n  a: {kind: echo}\n", "---\nagents:\n  a: {kind: echo}\n...\n# the end\n"} {
		if _, err := parseFile([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Whatever a file is, it is read or refused with a line, and takes no panic and no memory.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("agents:\n  a: &a {kind: echo}\n  b: {<<: [*a], label: x}\n  c: *a\n"))
	f.Add([]byte("a: &a [*a]\n--- \n? - x\n: !!set {y}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseFile(text); err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
