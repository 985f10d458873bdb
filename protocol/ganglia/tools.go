package ganglia

import "vela/protocol/signal"

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

var actions = map[task]Action{
	other: Thinking, read: ReadingFile, write: WritingFile, edit: EditingFile,
	search: SearchingFiles, web: WebSearch, run: ExecutingCommand,
}

// StatusOf is the status that a tool call shows while it runs; startedAt is in Unix ms. A tool that is not known here
// counts as thinking.
func StatusOf(call signal.ToolCall, startedAt int64) Status {
	detail, _ := parse(call.Input).text("path", "file_path", "pattern", "query", "command")
	return Status{Action: actions[tools[call.ToolName]], Detail: line(detail), StartedAt: startedAt}
}
