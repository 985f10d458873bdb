package ganglia_test

import (
	"encoding/json"
	"errors"
	"reflect"
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
}

func TestObjectsAreTheChannels(t *testing.T) {
	for _, c := range objects {
		t.Run(c.name, func(t *testing.T) {
			b, err := c.object.(json.Marshaler).MarshalJSON() // encoding/json would compact and escape it once more
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
		names := append([]string{"type", "artifact_type", "title", "segmentId"}, want[typ]...)
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
