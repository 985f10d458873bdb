// Package tool is what an agent can do beside talking. A [Tool] does one thing; a [Caller] is several of them behind one
// door, and doors stack: [Observe] reports what goes through, [Approve] asks before it does.
//
//	tools, err := tool.NewSet(append(tool.Files(root, 0), more...)...)
//	door := tool.Observe(tool.Approve(tool.Join(tools, others...), rules, req.Ask), agentID, report)
//	result, err := door.Call(ctx, call)
//
// The built-in tools are in files.go, which says what keeps them inside one folder, and in a file each. [Bash] is not
// kept inside of it: it is there only where it is asked for.
package tool

import (
	"context"
	"encoding/json"
)

// Definition is what a model is told about a tool.
type Definition struct {
	Name        string // of letters, digits, _ and -, at most 64: what every vendor takes
	Description string
	Parameters  json.RawMessage // JSON Schema of the input, which is an object

	// ReadOnly says that the tool changes nothing, as far as its maker says. It lowers the risk that a person is told;
	// it never spares the question, since the maker of a tool may be wrong, or lie.
	ReadOnly bool
}

// Tool does one thing. Run may be called from several goroutines.
type Tool interface {
	Definition() Definition

	// Run does it. It ends promptly once ctx is done. An error means that it did not work, and its words are for the
	// model and the person: they name no path outside of the tool's root, no key and no host.
	Run(ctx context.Context, input json.RawMessage) (Result, error)
}

// Result is what a tool returns.
type Result struct {
	Content string // for the model; each tool bounds its own

	// Output is for whoever watches: a JSON object, which becomes the output of a [signal.ToolResult]. Empty stands for
	// {"content": Content}. An edited file's object has a "diff": a unified diff with three lines of context.
	Output json.RawMessage
}

// Call is a tool call as a model makes it.
type Call struct {
	ID    string
	Name  string
	Input json.RawMessage // as the model wrote it; it may be no JSON at all
}

// Caller runs tools by name. Both methods may be called from several goroutines.
type Caller interface {
	// Definitions may differ from one time to the next: the tools of a server come and go with it. They are the caller's
	// to keep, but their Parameters are not to be changed.
	Definitions() []Definition

	// Call runs one tool. It returns an error for a tool that is not there, an input that is not a JSON object, and
	// whatever the tool returns; the words of an error are fit for the model and the person.
	Call(ctx context.Context, c Call) (Result, error)
}
