package ganglia

import (
	"strings"

	"vela/protocol/signal"
)

// task is what a tool is for, as far as it shows.
type task int

const (
	other task = iota
	read
	write
	edit
	search
	web
	run
)

// tools says what the tools of others and of ours are for, by their exact names.
var tools = map[string]task{
	// Of the data channel's own contract, and Vela's.
	"read_file": read, "write_file": write, "edit_file": edit, "apply_diff": edit,
	"search": search, "grep": search, "glob": search, "web_search": web, "bash": run,

	// Claude Code's (https://docs.anthropic.com/en/docs/claude-code/settings lists them).
	"Read": read, "NotebookRead": read, "Write": write, "Edit": edit, "MultiEdit": edit, "NotebookEdit": edit,
	"Grep": search, "Glob": search, "LS": search, "WebSearch": web, "WebFetch": web, "Bash": run, "BashOutput": run,

	// OpenClaw's.
	"read": read, "write": write, "edit": edit, "apply_patch": edit, "find": search, "ls": search,
	"web_fetch": web, "exec": run, "process": run,
}

// served says what tools of MCP servers are for. Their names stand behind the server's and a _, as in files_read_file; the
// server's own has none. Only what can mean nothing else is here: what a server "writes" or "searches" may be anything.
var served = map[string]task{
	"read_file": read, "read_text_file": read, "read_multiple_files": read, "write_file": write, "edit_file": edit,
	"list_directory": search, "directory_tree": search, "search_files": search, "web_search": web,
}

// taskOf is what a tool is for, as far as a status says it.
func taskOf(name string) task {
	if t, ok := tools[name]; ok {
		return t
	}
	_, behind, _ := strings.Cut(name, "_")
	return served[behind]
}

var actions = map[task]Action{
	other: Thinking, read: ReadingFile, write: WritingFile, edit: EditingFile,
	search: SearchingFiles, web: WebSearch, run: ExecutingCommand,
}

// StatusOf is the status that a tool call shows while it runs; startedAt is in Unix ms. A tool that is not known here
// counts as thinking.
func StatusOf(call signal.ToolCall, startedAt int64) Status {
	detail, _ := parse(call.Input).text("path", "file_path", "pattern", "query", "command")
	return Status{Action: actions[taskOf(call.ToolName)], Detail: line(detail), StartedAt: startedAt}
}
