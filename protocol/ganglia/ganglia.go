// Package ganglia is the vocabulary of the data channel ganglia-events: what a phone or a page shows of an agent's work
// beside its words. Start at [Event]: a [Status] says what the agent is doing, an [Artifact] is something to look at that
// came of it, a [Content] is the next piece of its text. What else the channel carries to a client stands in room.go, what
// a client sends on it, a [Command], in command.go.
//
// The JSON of each is the channel's object, to the letter. The same objects are the payloads of status and artifact in
// version 2 of the Vela protocol. [Encode] writes one, [Decode] and [DecodeCommand] read one. An object that is too long
// for a packet goes through [Split], and a [Joiner] puts its pieces together again.
//
// [StatusOf] and [ArtifactOf] make them of a tool call and its result, whoever ran the tool: Vela's own agents, OpenClaw
// or Claude Code. What these call their tools stands in tools.go, where their results keep what in result.go.
//
// The package is pure: no IO, no goroutine, no clock. All of it may be called from anywhere.
package ganglia

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Event is one object of the channel on its way to a client: a [Status], an [Artifact] or a [Content], or one of those in
// room.go. A type switch tells which.
type Event interface {
	// Type is the object's "type".
	Type() string
	json.Marshaler
}

// Status says what the agent is doing.
type Status struct {
	Action    Action `json:"action"`
	Detail    string `json:"detail,omitempty"`    // a path, a pattern, a query or a command: one line, at most 1 KiB
	StartedAt int64  `json:"startedAt,omitempty"` // Unix ms
	Source    string `json:"source,omitempty"`    // who does it; not there for the session's own agent
}

// Action is what an agent may be doing.
type Action string

// The actions. A reader that does not know one shows it as [Thinking].
const (
	Thinking         Action = "thinking"
	SearchingFiles   Action = "searching_files"
	ReadingFile      Action = "reading_file"
	WritingFile      Action = "writing_file"
	EditingFile      Action = "editing_file"
	WebSearch        Action = "web_search"
	ExecutingCommand Action = "executing_command"
	Analyzing        Action = "analyzing"
)

// Actions returns all of them.
func Actions() []Action {
	return []Action{Thinking, SearchingFiles, ReadingFile, WritingFile, EditingFile, WebSearch, ExecutingCommand, Analyzing}
}

// Artifact is something to look at that came of a tool. Its artifact type says which fields it has: the tag of:"diff
// code?" stands at one that a diff always has and code may have. No artifact of [ArtifactOf] is longer than 1 MiB in
// JSON.
type Artifact struct {
	ArtifactType ArtifactType   `json:"artifact_type"`
	Title        string         `json:"title,omitempty"`                           // for a person
	SegmentID    string         `json:"segmentId,omitempty"`                       // the piece of the answer that it belongs to
	Source       string         `json:"source,omitempty"`                          // whose tool it came of; not there for the session's own agent
	File         string         `json:"file,omitempty" of:"diff code?"`            // a path
	Path         string         `json:"path,omitempty" of:"markdown? file"`        // a path
	Language     string         `json:"language,omitempty" of:"code? file?"`       // as highlighters call it, such as go
	StartLine    int            `json:"startLine,omitempty" of:"code?"`            // where in the file the content begins, from 1
	Content      string         `json:"content,omitempty" of:"code markdown file"` // at most 256 KiB; if it was cut, its last line says so
	Diff         string         `json:"diff,omitempty" of:"diff"`                  // a unified diff, bounded as a content is
	Query        string         `json:"query,omitempty" of:"search_results"`       // what was searched for
	Results      []SearchResult `json:"results,omitempty" of:"search_results"`     // at most 1,000
	Message      string         `json:"message,omitempty" of:"error"`              // for a person
	Stack        string         `json:"stack,omitempty" of:"error?"`               // Vela never sends one
}

// ArtifactType says what an artifact is.
type ArtifactType string

// The artifact types.
const (
	Diff          ArtifactType = "diff"
	Code          ArtifactType = "code"
	Markdown      ArtifactType = "markdown"
	File          ArtifactType = "file"
	SearchResults ArtifactType = "search_results"
	Error         ArtifactType = "error"
)

// ArtifactTypes returns all of them.
func ArtifactTypes() []ArtifactType {
	return []ArtifactType{Diff, Code, Markdown, File, SearchResults, Error}
}

// SearchResult is one place that a search found.
type SearchResult struct {
	File    string `json:"file"` // a path; empty in a row that only says something
	Line    int    `json:"line"` // from 1; 0 where the search was for files
	Content string `json:"content"`
}

// Content is the next piece of the agent's text.
type Content struct {
	Delta string `json:"delta"`
}

// Type implements [Event].
func (Status) Type() string   { return "status" }
func (Artifact) Type() string { return "artifact" }
func (Content) Type() string  { return "content" }

// IsStatus, IsArtifact and IsContent are the three tests of the channel's contract.
func IsStatus(e Event) bool   { return is[Status](e) }
func IsArtifact(e Event) bool { return is[Artifact](e) }
func IsContent(e Event) bool  { return is[Content](e) }

func is[E Event](e Event) bool { _, ok := e.(E); return ok }

// MarshalJSON writes the channel's object, its type first.
func (s Status) MarshalJSON() ([]byte, error) {
	type fields Status
	return typed(s.Type(), fields(s))
}

// MarshalJSON writes the channel's object, its type first.
func (c Content) MarshalJSON() ([]byte, error) {
	type fields Content
	return typed(c.Type(), fields(c))
}

// MarshalJSON writes the channel's object, its type first: what an artifact of this type always has, be it empty, and
// what of the rest it has. Of a type that is not known here, everything that is set.
func (a Artifact) MarshalJSON() ([]byte, error) {
	known := slices.Contains(ArtifactTypes(), a.ArtifactType)
	object := []byte(`{"type":"artifact"`)
	for field, value := range reflect.ValueOf(a).Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		required := options == ""
		if of, tagged := field.Tag.Lookup("of"); tagged && known {
			kinds := strings.Fields(of)
			required = slices.Contains(kinds, string(a.ArtifactType))
			if !required && !slices.Contains(kinds, string(a.ArtifactType)+"?") {
				continue
			}
		}
		if value.IsZero() && !required {
			continue
		}
		text := []byte("[]") // of a nil slice
		if value.Kind() != reflect.Slice || value.Len() > 0 {
			var err error
			if text, err = marshal(value.Interface()); err != nil {
				return nil, err
			}
		}
		object = fmt.Appendf(object, `,"%s":%s`, name, text)
	}
	return append(object, '}'), nil
}

// marshal leaves <, > and & as they are, as the rest of the protocol does.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("ganglia: encode %T: %w", v, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// typed writes the members of a struct behind their object's type.
func typed(typ string, fields any) ([]byte, error) {
	members, err := marshal(fields)
	if err != nil {
		return nil, err
	}
	object := fmt.Appendf(nil, `{"type":"%s"`, typ)
	if len(members) > len("{}") {
		object = append(object, ',')
	}
	return append(object, members[1:]...), nil
}

// Encode writes an [Event] or a [Command] as the channel's object. Those of this package can always be written.
func Encode(object json.Marshaler) ([]byte, error) {
	return object.MarshalJSON() // as it is: encoding/json would escape <, > and & in it
}

// ErrUnknownType is what [Decode] and [DecodeCommand] return, wrapped, for an object whose type is none of theirs. The
// channel may carry more, and a reader passes over what it does not know.
var ErrUnknownType = errors.New("ganglia: unknown type")

// events reads the objects that go to a client.
var events = map[string]func([]byte) (Event, error){
	Status{}.Type():          as[Status],
	Artifact{}.Type():        as[Artifact],
	Content{}.Type():         as[Content],
	AgentTranscript{}.Type(): as[AgentTranscript],
	UserTranscript{}.Type():  as[UserTranscript],
	SystemEvent{}.Type():     as[SystemEvent],
	SessionHold{}.Type():     as[SessionHold],
	Bootstrap{}.Type():       as[Bootstrap],
	PipelineInfo{}.Type():    as[PipelineInfo],
}

// Decode reads one object of the channel that goes to a client. Fields that are not named here are ignored, and an action
// or an artifact type that is not known here is left as it is.
func Decode(object []byte) (Event, error) { return decode(object, events) }

func decode[E Event](object []byte, known map[string]func([]byte) (E, error)) (E, error) {
	var none E
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return none, fmt.Errorf("ganglia: decode: %w", err)
	}
	read, ok := known[head.Type]
	if !ok {
		return none, fmt.Errorf("%w %.64q", ErrUnknownType, head.Type)
	}
	return read(object)
}

func as[E Event](object []byte) (Event, error) {
	var e E
	if err := json.Unmarshal(object, &e); err != nil {
		return nil, fmt.Errorf("ganglia: decode %s: %w", e.Type(), err)
	}
	return e, nil
}
