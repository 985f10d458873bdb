package ganglia

import (
	"encoding/json"
	"strings"
)

// object is a JSON object, read one level deep: what a tool was given, or what it returned. One that is nil, which
// stands for anything that is no object, has no members.
//
// Where a result keeps its texts depends on who ran the tool:
//
//	Vela         {"content": string, "diff": string, "path": string}
//	Claude Code  {"file": {"filePath", "content", "startLine"}}, {"filePath", "structuredPatch": […]},
//	             {"filenames": […], "content": string}, {"stdout", "stderr"}
//	OpenClaw     {"content": [{"type": "text", "text": string}], "details": {"content" | "error" | "patch": string}}
//
// Claude Code's also comes as {"response": …}, which is how its hooks are made into signals.
type object map[string]json.RawMessage

func parse(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

func resultOf(raw json.RawMessage) object {
	o := parse(raw)
	response, wrapped := o["response"]
	if !wrapped || len(o) > 1 {
		return o
	}
	if inner := parse(response); inner != nil {
		return inner
	}
	return object{"content": response}
}

// text returns the first member that is a string and not empty.
func (o object) text(names ...string) (string, bool) {
	for _, name := range names {
		var s string
		if json.Unmarshal(o[name], &s) == nil && s != "" {
			return s, true
		}
	}
	return "", false
}

// content is the text that was returned; it may be there and empty.
func (o object) content() (string, bool) {
	for _, raw := range []json.RawMessage{parse(o["file"])["content"], parse(o["details"])["content"], o["content"]} {
		var s *string
		if json.Unmarshal(raw, &s) == nil && s != nil {
			return *s, true
		}
	}
	return blocks(o["content"])
}

// blocks joins the texts of a list of content blocks; what else such a list holds, images above all, is passed over.
func blocks(raw json.RawMessage) (string, bool) {
	var list []struct{ Text *string }
	if json.Unmarshal(raw, &list) != nil {
		return "", false
	}
	var texts []string
	for _, block := range list {
		if block.Text != nil {
			texts = append(texts, *block.Text)
		}
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// startLine is where in the file the content begins, as the result says or else the call asked; 0 for its beginning.
func startLine(in, out object) int {
	for _, raw := range []json.RawMessage{parse(out["file"])["startLine"], in["offset"]} {
		var n int
		if json.Unmarshal(raw, &n) == nil && n > 1 {
			return n
		}
	}
	return 0
}

// message says why a tool failed, in the tool's own words.
func (o object) message() string {
	for _, from := range []object{o, parse(o["error"]), parse(o["details"])} {
		if s, ok := from.text("error", "message", "stderr"); ok && strings.TrimSpace(s) != "" {
			return s
		}
	}
	if s, ok := o.content(); ok && strings.TrimSpace(s) != "" {
		return s
	}
	return "Unknown error"
}
