package ganglia_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vela/protocol/ganglia"
)

// objects has every kind of object with all its fields, and with only those that it must have. What stands there is
// what the channel's contract (the document on its events, section Event Types) asks for, be it empty.
var objects = []struct {
	name   string
	object ganglia.Event
	json   string
}{
	{"status", ganglia.Status{Action: ganglia.ReadingFile, Detail: "a<b>.go", StartedAt: 1738900000000},
		`{"type":"status","action":"reading_file","detail":"a<b>.go","startedAt":1738900000000}`},
	{"status of a source", ganglia.Status{Action: ganglia.ReadingFile, Source: "local:claude-code"},
		`{"type":"status","action":"reading_file","source":"local:claude-code"}`},
	{"bare status", ganglia.Status{Action: ganglia.Thinking}, `{"type":"status","action":"thinking"}`},
	{"content", ganglia.Content{Delta: "Three "}, `{"type":"content","delta":"Three "}`},
	{"empty content", ganglia.Content{}, `{"type":"content","delta":""}`},

	{"diff", ganglia.Artifact{ArtifactType: ganglia.Diff, Title: "T", SegmentID: "seg_1", File: "f", Diff: "d"},
		`{"type":"artifact","artifact_type":"diff","title":"T","segmentId":"seg_1","file":"f","diff":"d"}`},
	{"bare diff", ganglia.Artifact{ArtifactType: ganglia.Diff}, `{"type":"artifact","artifact_type":"diff","file":"","diff":""}`},
	{"code", ganglia.Artifact{ArtifactType: ganglia.Code, Title: "T", File: "f", Language: "go", StartLine: 3, Content: "a && b"},
		`{"type":"artifact","artifact_type":"code","title":"T","file":"f","language":"go","startLine":3,"content":"a && b"}`},
	{"bare code", ganglia.Artifact{ArtifactType: ganglia.Code}, `{"type":"artifact","artifact_type":"code","content":""}`},
	{"markdown", ganglia.Artifact{ArtifactType: ganglia.Markdown, Path: "p", Content: "# c"},
		`{"type":"artifact","artifact_type":"markdown","path":"p","content":"# c"}`},
	{"markdown of a source", ganglia.Artifact{ArtifactType: ganglia.Markdown, Source: "local:openclaw", Content: "c"},
		`{"type":"artifact","artifact_type":"markdown","source":"local:openclaw","content":"c"}`},
	{"bare markdown", ganglia.Artifact{ArtifactType: ganglia.Markdown}, `{"type":"artifact","artifact_type":"markdown","content":""}`},
	{"file", ganglia.Artifact{ArtifactType: ganglia.File, Path: "p", Language: "l", Content: "c"},
		`{"type":"artifact","artifact_type":"file","path":"p","language":"l","content":"c"}`},
	{"bare file", ganglia.Artifact{ArtifactType: ganglia.File}, `{"type":"artifact","artifact_type":"file","path":"","content":""}`},
	{"search results", ganglia.Artifact{ArtifactType: ganglia.SearchResults, Query: "q", Results: []ganglia.SearchResult{{File: "f", Line: 1, Content: "c"}, {File: "g"}}},
		`{"type":"artifact","artifact_type":"search_results","query":"q","results":[{"file":"f","line":1,"content":"c"},{"file":"g","line":0,"content":""}]}`},
	{"bare search results", ganglia.Artifact{ArtifactType: ganglia.SearchResults, Results: []ganglia.SearchResult{}},
		`{"type":"artifact","artifact_type":"search_results","query":"","results":[]}`},
	{"error", ganglia.Artifact{ArtifactType: ganglia.Error, Title: "T", Message: "m", Stack: "s"},
		`{"type":"artifact","artifact_type":"error","title":"T","message":"m","stack":"s"}`},
	{"bare error", ganglia.Artifact{ArtifactType: ganglia.Error}, `{"type":"artifact","artifact_type":"error","message":""}`},
	{"of another day", ganglia.Artifact{ArtifactType: "chart", File: "f", Query: "q"},
		`{"type":"artifact","artifact_type":"chart","file":"f","query":"q"}`},

	{"agent's words", ganglia.AgentTranscript{SegmentID: "seg_2", Delta: "miles", Text: "Three miles", Final: false},
		`{"type":"agent_transcript","segmentId":"seg_2","delta":"miles","text":"Three miles","final":false}`},
	{"user's words", ganglia.UserTranscript{SegmentID: "user_seg_1", Text: "how far <is> it", Final: true},
		`{"type":"user_transcript","segmentId":"user_seg_1","text":"how far <is> it","final":true}`},
	{"system event", ganglia.SystemEvent{Severity: ganglia.SeverityError, Title: "Voice Unavailable", Message: "Answers come as text."},
		`{"type":"system_event","severity":"error","title":"Voice Unavailable","message":"Answers come as text."}`},
	{"session hold", ganglia.SessionHold{Reason: ganglia.HoldIdle}, `{"type":"session_hold","reason":"idle"}`},
	{"bootstrap", ganglia.Bootstrap{Phase: ganglia.PhaseStart}, `{"type":"bootstrap","phase":"start"}`},
	{"pipeline", ganglia.PipelineInfo{STT: "PocketSphinx", TTS: "Flite", LLM: "Echo"},
		`{"type":"pipeline_info","stt":"PocketSphinx","tts":"Flite","llm":"Echo"}`},
}

// orders is the same for what a client sends.
var orders = []struct {
	name  string
	order ganglia.Command
	json  string
}{
	{"no sound", ganglia.TTSMode{Value: "off"}, `{"type":"tts-mode","value":"off"}`},
	{"typed", ganglia.TextMessage{Text: "a & b"}, `{"type":"text_message","text":"a & b"}`},
	{"farewell", ganglia.EndVoiceSession{}, `{"type":"end_voice_session"}`},
}

var update = flag.Bool("update", false, "write the golden files again")

// The browser's tests read the same objects.
func TestGoldenObjects(t *testing.T) {
	var golden struct {
		Events   map[string]json.RawMessage `json:"events"`
		Commands map[string]json.RawMessage `json:"commands"`
	}
	golden.Events, golden.Commands = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, c := range objects {
		golden.Events[c.name] = json.RawMessage(c.json)
	}
	for _, c := range orders {
		golden.Commands[c.name] = json.RawMessage(c.json)
	}
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(golden); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/objects.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("testdata/objects.json"); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("testdata/objects.json is not what the tables say; make generate writes it again: %v", err)
	}
}

func TestObjectsAreTheChannels(t *testing.T) {
	for _, c := range objects {
		t.Run(c.name, func(t *testing.T) {
			b, err := ganglia.Encode(c.object)
			if err != nil || string(b) != c.json {
				t.Errorf("written %s: %v\nwant    %s", b, err, c.json)
			}
			got, err := ganglia.Decode([]byte(c.json))
			if err != nil || !reflect.DeepEqual(got, c.object) {
				t.Errorf("read %#v: %v\nwant %#v", got, err, c.object)
			}
		})
	}
}

func TestCommandsAreTheChannels(t *testing.T) {
	for _, c := range orders {
		b, err := ganglia.Encode(c.order)
		if err != nil || string(b) != c.json {
			t.Errorf("%s is written %s: %v", c.name, b, err)
		}
		got, err := ganglia.DecodeCommand([]byte(c.json))
		if err != nil || got != c.order {
			t.Errorf("%s is read as %#v: %v", c.name, got, err)
		}
	}
}

// What goes one way is not taken the other way: nobody in a room may speak for the agent.
func TestEachSideHasItsOwnObjects(t *testing.T) {
	for _, c := range objects {
		if got, err := ganglia.DecodeCommand([]byte(c.json)); got != nil || !errors.Is(err, ganglia.ErrUnknownType) {
			t.Errorf("%s is a command: %#v, %v", c.name, got, err)
		}
	}
	for _, c := range orders {
		if got, err := ganglia.Decode([]byte(c.json)); got != nil || !errors.Is(err, ganglia.ErrUnknownType) {
			t.Errorf("%s is an event: %#v, %v", c.name, got, err)
		}
	}
}

func TestCommandsOfOthers(t *testing.T) {
	for value, on := range map[string]bool{`"on"`: true, `"off"`: false, `"OFF"`: true, `""`: true, `null`: true} {
		got, err := ganglia.DecodeCommand([]byte(`{"type":"tts-mode","value":` + value + `,"v":2}`))
		if mode, ok := got.(ganglia.TTSMode); err != nil || !ok || mode.On() != on {
			t.Errorf("%s: %#v, %v", value, got, err)
		}
	}
	for _, object := range []string{
		``, `[]`, `{"type":"tts-mode","value":false}`, `{"type":"text_message","text":1e400}`, `{"type":"text_message","text":[`,
		`{"type":"text_message","text":"a"}{}`, strings.Repeat(`{"type":`, 7000),
		`{"type":"text_message","text":"` + strings.Repeat("a", 64<<10) + `"}`,
	} {
		if got, err := ganglia.DecodeCommand([]byte(object)); got != nil || err == nil || len(err.Error()) > 200 {
			t.Errorf("%.60s: %#v, %v", object, got, err)
		}
	}
}

func TestTypeTests(t *testing.T) {
	for _, c := range objects {
		is := []bool{ganglia.IsStatus(c.object), ganglia.IsArtifact(c.object), ganglia.IsContent(c.object)}
		typ := c.object.Type()
		if want := []bool{typ == "status", typ == "artifact", typ == "content"}; !slices.Equal(is, want) {
			t.Errorf("%s: %v", c.name, is)
		}
	}
}

func TestResultsAreAListEvenIfThereIsNone(t *testing.T) {
	b, err := json.Marshal(ganglia.Artifact{ArtifactType: ganglia.SearchResults})
	if want := `{"type":"artifact","artifact_type":"search_results","query":"","results":[]}`; err != nil || string(b) != want {
		t.Errorf("%s: %v", b, err)
	}
}

// What a type does not have does not get out, whatever was set.
func TestAnArtifactHasOnlyItsOwnFields(t *testing.T) {
	var all ganglia.Artifact
	for _, value := range reflect.ValueOf(&all).Elem().Fields() {
		switch value.Kind() {
		case reflect.String:
			value.SetString("x")
		case reflect.Int:
			value.SetInt(1)
		case reflect.Slice:
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		}
	}
	want := map[ganglia.ArtifactType][]string{
		ganglia.Diff:          {"file", "diff"},
		ganglia.Code:          {"file", "language", "startLine", "content"},
		ganglia.Markdown:      {"path", "content"},
		ganglia.File:          {"path", "language", "content"},
		ganglia.SearchResults: {"query", "results"},
		ganglia.Error:         {"message", "stack"},
	}
	for _, typ := range ganglia.ArtifactTypes() {
		all.ArtifactType = typ
		b, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(b, &members); err != nil {
			t.Fatal(err)
		}
		names := append([]string{"type", "artifact_type", "title", "segmentId", "source"}, want[typ]...)
		for _, name := range names {
			if members[name] == nil {
				t.Errorf("%s has no %s: %s", typ, name, b)
			}
		}
		if len(members) != len(names) {
			t.Errorf("%s: %s", typ, b)
		}
	}
}

func TestDecodeTakesWhatAnotherDayMayAdd(t *testing.T) {
	got, err := ganglia.Decode([]byte(` {"v":2,"type":"status","action":"dreaming","detail":null}`))
	if err != nil || got != (ganglia.Status{Action: "dreaming"}) {
		t.Errorf("%#v, %v", got, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for object, unknown := range map[string]bool{
		`{"type":"chunk","data":""}`:            true,
		`{"type":"session_hold","reason":1}`:    false,
		`{"type":"Status","action":"x"}`:        true,
		`{}`:                                    true,
		`null`:                                  true,
		``:                                      false,
		`[]`:                                    false,
		`{"type":1}`:                            false,
		`{"type":"status","action":1}`:          false,
		`{"type":"artifact","results":{}}`:      false,
		`{"type":"content","delta":["a"]}`:      false,
		`{"type":"content","delta":"a"}{"a":1}`: false,
	} {
		got, err := ganglia.Decode([]byte(object))
		if got != nil || err == nil || errors.Is(err, ganglia.ErrUnknownType) != unknown {
			t.Errorf("%s: %#v, %v", object, got, err)
		}
	}
}
