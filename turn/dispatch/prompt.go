package dispatch

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"vela/turn"
)

// prompt is what a prompt file is made of.
type prompt struct {
	Signal  Signal
	Request turn.Request
	Earlier []finished // of this turn
	Last    bool       // its artifact has the answer
	Answer  string     // where, if it was configured
}

//go:embed prompt.md.tmpl
var promptText string

var promptTemplate = template.Must(template.New("prompt").Funcs(template.FuncMap{"fence": fence, "tool": toolUse}).Parse(promptText))

// markdown writes the prompt file. Whatever others said stands in fences, so that it cannot pass for words of ours.
func (p prompt) markdown() ([]byte, error) {
	var b bytes.Buffer
	if err := promptTemplate.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("dispatch: write the prompt: %w", err)
	}
	return b.Bytes(), nil
}

func (p prompt) Task() string     { return p.Signal.Step.about().task }
func (p prompt) Artifact() string { return p.Signal.Step.Artifact() }

// Shape is an example of an artifact. The step that has the answer shows where it belongs, unless that is configured
// and said in words.
func (p prompt) Shape() string {
	data := p.Signal.Step.about().shape
	if p.Last && p.Answer == "" {
		data = `{"answer": "What the user is told.", ` + data[1:]
	}
	return fmt.Sprintf(`{"dispatch_id": %d, "data": %s}`, p.Signal.DispatchID, data)
}

// maxHistory is how much of the conversation is told, in bytes; its newest part.
const maxHistory = 256 << 10

// History is the newest part of the conversation that fits.
func (p prompt) History() []turn.Message {
	room := maxHistory
	for i := len(p.Request.History) - 1; i >= 0; i-- {
		m := p.Request.History[i]
		room -= len(m.Text)
		for _, u := range m.Tools {
			room -= len(u.Input) + len(u.Output)
		}
		if room < 0 {
			return p.Request.History[i+1:]
		}
	}
	return p.Request.History
}

// Cut says whether there is more of the conversation than is told.
func (p prompt) Cut() bool { return len(p.History()) < len(p.Request.History) }

// toolUse is a tool call in words.
func toolUse(u turn.ToolUse) string {
	outcome := "returned"
	if !u.Success {
		outcome = "failed"
	}
	if len(u.Output) > 0 {
		outcome += ": " + string(u.Output)
	}
	return fmt.Sprintf("%s %s\n%s", u.Name, u.Input, outcome)
}

// fence puts a text between more backticks than it has in a row, so that nothing in it ends the block.
func fence(kind string, text any) string {
	body := strings.TrimRight(strings.ToValidUTF8(fmt.Sprintf("%s", text), "�"), "\r\n")
	longest, row := 2, 0
	for _, r := range body {
		if r != '`' {
			row = 0
			continue
		}
		row++
		longest = max(longest, row)
	}
	marks := strings.Repeat("`", longest+1)
	return marks + kind + "\n" + body + "\n" + marks
}
