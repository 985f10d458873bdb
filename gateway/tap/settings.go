package tap

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
)

// tag marks a hook as ours. It stands where Claude Code has a field of its own, which it shows while a hook runs, so that
// no version of it minds.
const tag = "vela-tap"

// tokenHeader carries the token of a hook.
const tokenHeader = "X-Vela-Tap"

// entry is one hook, as far as we write and read it
// (https://code.claude.com/docs/en/hooks; tried with Claude Code 2.1.329).
type entry struct {
	Type    string            `json:"type"` // http or command
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Async   bool              `json:"async,omitempty"` // of a command: nothing waits for it
	Timeout int               `json:"timeout,omitempty"`
	Tag     string            `json:"statusMessage,omitempty"`
}

// group is what stands in the list of an event. Without a matcher it is for all tools.
type group struct {
	Hooks []entry `json:"hooks"`
}

// events are those that are hooked, all of them by HTTP but for [commandEvent].
var events = []string{"PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "Stop"}

// commandEvent knows no hooks by HTTP.
const commandEvent = "SessionStart"

// hookTimeout is how long Claude Code waits for a hook, in seconds.
const hookTimeout = 5

// maxSettings bounds a file of settings, in bytes.
const maxSettings = 1 << 20

const errNotJSON refusal = "Claude Code's settings.local.json is not JSON. Put it right first." + left

// settings is the text of a settings.local.json, every byte of it, with its hooks at hand.
type settings struct {
	doc  hujson.Value
	root *hujson.Object
	unit string // one step of indentation; empty where all of it stands on one line
}

// parseSettings reads a text. What it does not understand is an error, so that nobody's settings are spoiled.
func parseSettings(text []byte) (*settings, error) {
	if len(text) > maxSettings {
		return nil, refusal("Claude Code's settings.local.json is longer than 1 MiB." + left)
	}
	if !json.Valid(text) { // which also bounds its depth
		return nil, errNotJSON
	}
	doc, err := hujson.Parse(text)
	if err != nil {
		return nil, errNotJSON
	}
	root, ok := doc.Value.(*hujson.Object)
	if !ok {
		return nil, refusal("Claude Code's settings.local.json is no JSON object. Put it right first." + left)
	}
	s := &settings{doc: doc, root: root, unit: "  "}
	if len(root.Members) > 0 {
		before := string(root.Members[0].Name.BeforeExtra)
		s.unit = ""
		if at := strings.LastIndexByte(before, '\n'); at >= 0 {
			s.unit = before[at+1:]
		}
	}
	hooks, err := s.hooks()
	if err != nil {
		return nil, err
	}
	if hooks == nil {
		return s, nil
	}
	for _, event := range append([]string{commandEvent}, events...) {
		if v, err := member(hooks, event); err != nil {
			return nil, err
		} else if _, list := valueOf(v).(*hujson.Array); v != nil && !list {
			return nil, refusal("The hooks for " + event + " in Claude Code's settings.local.json are no list. Put them right first." + left)
		}
	}
	return s, nil
}

// hooks is the object below "hooks", nil where there is none.
func (s *settings) hooks() (*hujson.Object, error) {
	v, err := member(s.root, "hooks")
	if v == nil || err != nil {
		return nil, err
	}
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, refusal("The hooks in Claude Code's settings.local.json are no object. Put them right first." + left)
	}
	return o, nil
}

// allows is nil if hooks to this address would be called, as far as this file says so.
func (s *settings) allows(url string) error {
	off, err := member(s.root, "disableAllHooks")
	if err != nil {
		return err
	}
	if v, ok := valueOf(off).(hujson.Literal); ok && v.Kind() == 't' {
		return refusal("Claude Code's settings.local.json turns all hooks off, by disableAllHooks. Turn them on first." + left)
	}
	allowed, err := member(s.root, "allowedHttpHookUrls")
	list, ok := valueOf(allowed).(*hujson.Array)
	if err != nil || !ok {
		return err
	}
	for _, e := range list.Elements {
		if v, ok := e.Value.(hujson.Literal); ok && v.Kind() == '"' && fits(v.String(), url) {
			return nil
		}
	}
	return refusal("Claude Code's settings.local.json allows no hooks to this gateway. Add its address, with /* behind it, to allowedHttpHookUrls first." + left)
}

// fits compares an address with a pattern, in which a star stands for anything.
func fits(pattern, url string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("^"+strings.Join(parts, ".*")+"$", url)
	return ok && err == nil
}

// member is the value of that name, nil where there is none. Of two it would be unclear which one counts.
func member(o *hujson.Object, name string) (*hujson.Value, error) {
	var found *hujson.Value
	for i := range o.Members {
		if o.Members[i].Name.Value.(hujson.Literal).String() != name {
			continue
		}
		if found != nil {
			return nil, refusal(name + " stands twice in Claude Code's settings.local.json. Take one out first." + left)
		}
		found = &o.Members[i].Value
	}
	return found, nil
}

func valueOf(v *hujson.Value) hujson.ValueTrimmed {
	if v == nil {
		return nil
	}
	return v.Value
}

// add puts our hooks behind those that are there.
func (s *settings) add(url, token, command string) error {
	hooks, err := s.hooks()
	if err != nil {
		return err
	}
	if hooks == nil {
		hooks = &hujson.Object{}
		s.append(s.root, 0, "hooks", hooks)
	}
	http := entry{Type: "http", URL: url, Headers: map[string]string{tokenHeader: token}, Timeout: hookTimeout, Tag: tag}
	for _, event := range events {
		if err := s.addTo(hooks, event, http); err != nil {
			return err
		}
	}
	return s.addTo(hooks, commandEvent, entry{Type: "command", Command: command, Async: true, Timeout: hookTimeout, Tag: tag})
}

func (s *settings) addTo(hooks *hujson.Object, event string, e entry) error {
	v, err := member(hooks, event)
	if err != nil {
		return err
	}
	list, ok := valueOf(v).(*hujson.Array)
	if !ok {
		list = &hujson.Array{}
		s.append(hooks, 1, event, list)
	}
	const depth = 3
	text, _ := json.Marshal(group{[]entry{e}}) // strings always have a JSON
	if s.unit != "" {
		text, _ = json.MarshalIndent(group{[]entry{e}}, strings.Repeat(s.unit, depth), s.unit)
	}
	g, err := hujson.Parse(text)
	if err != nil {
		return fmt.Errorf("tap: write a hook: %w", err)
	}
	g.BeforeExtra = s.line(depth)
	if len(list.Elements) == 0 {
		list.AfterExtra = s.line(depth - 1)
	}
	list.Elements = append(list.Elements, g)
	return nil
}

// append puts a member behind the others of an object, which lies so many steps deep.
func (s *settings) append(to *hujson.Object, depth int, name string, v hujson.ValueTrimmed) {
	if len(to.Members) == 0 {
		to.AfterExtra = s.line(depth)
	}
	m := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: s.line(depth + 1), Value: hujson.String(name)}, Value: hujson.Value{Value: v}}
	if s.unit != "" {
		m.Value.BeforeExtra = hujson.Extra(" ")
	}
	to.Members = append(to.Members, m)
}

// line begins a new line, where there are lines.
func (s *settings) line(depth int) hujson.Extra {
	if s.unit == "" {
		return nil
	}
	return hujson.Extra("\n" + strings.Repeat(s.unit, depth))
}

// ours are the hooks that are tagged.
func (s *settings) ours() []entry {
	var found []entry
	s.each(func(e entry) bool { found = append(found, e); return false })
	return found
}

// strip takes our hooks out, and what is empty without them.
func (s *settings) strip() { s.each(func(entry) bool { return true }) }

// each calls out for every hook of ours, and takes those out of which that is true.
func (s *settings) each(out func(entry) bool) {
	hooks, _ := s.hooks() // parseSettings has looked
	if hooks == nil {
		return
	}
	emptied := false
	for i := len(hooks.Members) - 1; i >= 0; i-- {
		list, ok := hooks.Members[i].Value.Value.(*hujson.Array)
		if ok && eachOf(list, out) {
			removeMember(hooks, i)
			emptied = len(hooks.Members) == 0
		}
	}
	for i := range s.root.Members {
		if emptied && s.root.Members[i].Name.Value.(hujson.Literal).String() == "hooks" {
			removeMember(s.root, i)
			return
		}
	}
}

// eachOf does the same for one event, and says whether that left nothing of what was there.
func eachOf(groups *hujson.Array, out func(entry) bool) (emptied bool) {
	for i := len(groups.Elements) - 1; i >= 0; i-- {
		g, ok := groups.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		v, err := member(g, "hooks")
		list, ok := valueOf(v).(*hujson.Array)
		if err != nil || !ok {
			continue
		}
		removed := false
		for j := len(list.Elements) - 1; j >= 0; j-- {
			var e entry
			if json.Unmarshal(list.Elements[j].Pack(), &e) == nil && e.Tag == tag && out(e) {
				removeElement(list, j)
				removed = true
			}
		}
		if removed && len(list.Elements) == 0 {
			removeElement(groups, i)
			emptied = len(groups.Elements) == 0
		}
	}
	return emptied
}

func removeMember(o *hujson.Object, i int) {
	o.Members = append(o.Members[:i], o.Members[i+1:]...)
	if n := len(o.Members); n > 0 {
		o.Members[n-1].Value.AfterExtra = nil // or a comma would stand behind it
	} else {
		o.AfterExtra = nil
	}
}

func removeElement(a *hujson.Array, i int) {
	a.Elements = append(a.Elements[:i], a.Elements[i+1:]...)
	if n := len(a.Elements); n > 0 {
		a.Elements[n-1].AfterExtra = nil
	} else {
		a.AfterExtra = nil
	}
}

// text is the file's new text.
func (s *settings) text() ([]byte, error) {
	text := s.doc.Pack()
	if !json.Valid(text) {
		return nil, refusal("Claude Code's settings.local.json cannot be changed without harm." + left)
	}
	return text, nil
}
