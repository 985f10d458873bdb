package ganglia_test

import (
	"encoding/json"
	"testing"

	"vela/protocol/ganglia"
	"vela/protocol/signal"
)

func call(name, input string) signal.ToolCall {
	return signal.ToolCall{ToolName: name, AgentID: "a", CallID: "c", Input: json.RawMessage(input)}
}

func TestStatusActions(t *testing.T) {
	for action, names := range map[ganglia.Action][]string{
		ganglia.ReadingFile:      {"Read", "read_file", "read", "NotebookRead"},
		ganglia.WritingFile:      {"Write", "write_file", "write"},
		ganglia.EditingFile:      {"Edit", "edit_file", "edit", "MultiEdit", "NotebookEdit", "apply_diff", "apply_patch"},
		ganglia.SearchingFiles:   {"Grep", "Glob", "search", "grep", "glob", "find", "ls", "LS"},
		ganglia.WebSearch:        {"WebSearch", "web_search", "WebFetch", "web_fetch"},
		ganglia.ExecutingCommand: {"Bash", "bash", "exec", "process", "BashOutput"},
		ganglia.Thinking:         {"", "Agent", "distance", "READ_FILE", "read-file", "mcp__read"},
	} {
		for _, name := range names {
			got := ganglia.StatusOf(call(name, `{"path":"p"}`), 17)
			if want := (ganglia.Status{Action: action, Detail: "p", StartedAt: 17}); got != want {
				t.Errorf("%q: %+v, want %+v", name, got, want)
			}
		}
	}
}

func TestStatusDetail(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"c","query":"q","pattern":"p","file_path":"f","path":"here"}`: "here",
		`{"command":"c","query":"q","pattern":"p","file_path":"f"}`:               "f",
		`{"command":"c","query":"q","pattern":"p"}`:                               "p",
		`{"command":"c","query":"q"}`:                                             "q",
		`{"command":"c"}`:                                                         "c",
		`{"url":"u"}`:                                                             "",
		`{"path":"","query":"q"}`:                                                 "q",
		`{"path":null,"file_path":7,"query":["x"],"command":"c"}`:                 "c",
		`{"command":"one\n\ttwo\u0007"}`:                                          "one  two\ufffd",
		`{}`:                                                                      "", `null`: "", `[]`: "", `{"path":`: "", "": "",
	} {
		if got := ganglia.StatusOf(call("Bash", input), 0).Detail; got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
}

// The tools of an MCP server have its name before theirs. A status sees past it where the rest can mean but one thing.
func TestStatusOfToolsBehindAServersName(t *testing.T) {
	for name, want := range map[string]ganglia.Action{
		"shared_read_text_file": ganglia.ReadingFile,
		"my-files_write_file":   ganglia.WritingFile,
		"files_edit_file":       ganglia.EditingFile,
		"files_directory_tree":  ganglia.SearchingFiles,
		"brave_web_search":      ganglia.WebSearch,
		"crm_write":             ganglia.Thinking,
		"crm_search":            ganglia.Thinking,
		"host_bash":             ganglia.Thinking,
		"a_b_read_file":         ganglia.Thinking,
		"_":                     ganglia.Thinking,
		"":                      ganglia.Thinking,
	} {
		if got := ganglia.StatusOf(call(name, `{"path":"p"}`), 0); got.Action != want || got.Detail != "p" {
			t.Errorf("%q shows %+v, want %s", name, got, want)
		}
	}
}
