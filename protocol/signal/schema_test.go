package signal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is the schema as an independent reader understands it.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("signal.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("signal.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func against(t testing.TB, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s.Validate(v)
}

type definition struct {
	Required   []string
	Properties map[string]struct {
		Type string
		Ref  string `json:"$ref"`
		Enum []string
	}
}

// The schema and the Go types are two descriptions of one thing: the same fields, of the same kinds, and required where
// Go always writes them.
func TestTheSchemaAndTheGoTypesAgree(t *testing.T) {
	var doc struct {
		definition
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	agree(t, "envelope", doc.definition, reflect.TypeFor[Raw]())
	for _, p := range WellKnown() {
		var d definition
		if err := json.Unmarshal(doc.Defs[p.SignalType()], &d); err != nil {
			t.Fatalf("%s: %v", p.SignalType(), err)
		}
		agree(t, p.SignalType(), d, reflect.TypeOf(p))
	}
	for name, of := range map[string]reflect.Type{"point": reflect.TypeFor[Point](), "rect": reflect.TypeFor[Rect]()} {
		var d definition
		if err := json.Unmarshal(doc.Defs[name], &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		agree(t, name, d, of)
	}
	var d definition
	if err := json.Unmarshal(doc.Defs["onChannel"], &d); err != nil {
		t.Fatal(err)
	}
	agree(t, "onChannel", d, reflect.TypeFor[Channel]())
}

func agree(t *testing.T, name string, d definition, of reflect.Type) {
	t.Helper()
	var fields, required []string
	for f := range of.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, tag)
		if options == "" {
			required = append(required, tag)
		}
		p := d.Properties[tag]
		if kind := p.Type + p.Ref + strings.Join(p.Enum, "|"); !slices.Contains(kindsOf(f.Type), kind) {
			t.Errorf("%s.%s is %s in Go and %q in the schema", name, tag, f.Type, kind)
		}
	}
	var properties []string
	for p := range d.Properties {
		properties = append(properties, p)
	}
	for what, lists := range map[string][2][]string{"fields": {fields, properties}, "required": {required, d.Required}} {
		slices.Sort(lists[0])
		slices.Sort(lists[1])
		if !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%s of %s: %v in Go, %v in the schema", what, name, lists[0], lists[1])
		}
	}
}

func kindsOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return []string{"object"}
	case reflect.TypeFor[AgentState]():
		return []string{"#/$defs/state"}
	case reflect.TypeFor[Severity]():
		return []string{"warning|error|critical"}
	case reflect.TypeFor[ContentType]():
		return []string{"text|code|markdown"}
	case reflect.TypeFor[*Point](), reflect.TypeFor[Point]():
		return []string{"#/$defs/point"}
	case reflect.TypeFor[Rect]():
		return []string{"#/$defs/rect"}
	}
	switch t.Kind() {
	case reflect.String:
		return []string{"string", "#/$defs/name", "#/$defs/label"}
	case reflect.Bool:
		return []string{"boolean"}
	case reflect.Int:
		return []string{"#/$defs/count"}
	case reflect.Float64, reflect.Int64:
		return []string{"number"}
	}
	return nil
}

// valid is a signal of the type with this payload.
func valid(typ, payload string) Raw {
	return Raw{ID: "1", Type: typ, Timestamp: 5, Source: "s", Payload: json.RawMessage(payload)}
}

// wrong are payloads that the schema refuses, each for one reason.
var wrong = map[string][]string{
	"task_dispatch":      {`{}`, `{"taskId":"t","from":"a"}`, `{"taskId":1,"from":"a","to":"b"}`, `{"taskId":"t","from":"a","to":"b","x":1}`, `{"TaskId":"t","from":"a","to":"b"}`},
	"tool_call":          {`{"toolName":"n"}`, `{"toolName":"n","agentId":"a","input":"text"}`, `{"toolName":"n","agentId":"a","input":null}`},
	"tool_result":        {`{"toolName":"n","agentId":"a"}`, `{"toolName":"n","agentId":"a","success":"yes"}`, `{"toolName":"n","agentId":"a","success":true,"output":[]}`},
	"token_usage":        {`{"agentId":"a","promptTokens":1}`, `{"agentId":"a","promptTokens":-1,"completionTokens":1}`, `{"agentId":"a","promptTokens":1.5,"completionTokens":1}`, `{"agentId":"a","promptTokens":1,"completionTokens":1,"cost":-1}`, `{"agentId":"a","promptTokens":9007199254740992,"completionTokens":1}`},
	"agent_state_change": {`{"agentId":"a","from":"idle"}`, `{"agentId":"a","from":"idle","to":"asleep"}`, `{"agentId":"a","from":"idle","to":7}`},
	"error":              {`{"message":"m"}`, `{"message":"m","severity":"fatal"}`},
	"completion":         {`{"success":true}`, `{"taskId":"t","success":1}`},
	"text_delta":         {`{"agentId":"a"}`, `{"agentId":"a","content":"c","contentType":"html"}`, `{"agentId":"a","content":"c","index":-1}`},
	"thinking":           {`{"content":"c"}`, `{"agentId":"a","content":"c","index":1}`},
	"user.click":         {`{}`, `{"target":"e","position":{"x":1}}`, `{"target":"e","position":{"x":1,"y":2,"z":3}}`, `{"target":"e","position":[1,2]}`},
	"user.move":          {`{"entityId":"e"}`},
	"user.zone":          {`{"bounds":{"x":1,"y":2,"w":3}}`, `{"bounds":{"x":1,"y":2,"w":-3,"h":4}}`},
	"user.command":       {`{"entityId":"e"}`, `{"entityId":"e","action":"a","params":[]}`},
	"user.point":         {`{}`, `{"position":{"x":"1","y":2}}`},
}

func TestCheckAndTheSchemaSayTheSame(t *testing.T) {
	s := compiled(t)
	both := func(r Raw, want bool) {
		t.Helper()
		ours, theirs := Check(r), against(t, s, r.Append(nil))
		if (ours == nil) != want || (theirs == nil) != want {
			t.Errorf("%s: ours %v, the schema's %v; want valid=%v", r.Append(nil), ours, theirs, want)
		}
	}
	for typ, body := range written {
		both(valid(typ, body), true)
		both(valid(typ, body[:len(body)-1]+`,"channel":"c","channelLabel":"l","sessionKey":"k","_meta":{"heartbeat":true}}`), true)
		both(valid(typ, body[:len(body)-1]+`,"channel":1}`), false)
		both(valid(typ, body[:len(body)-1]+`,"_meta":"m"}`), false)
		both(valid(typ, body[:len(body)-1]+`,"anything":1}`), false)
	}
	for typ, bodies := range wrong {
		for _, body := range bodies {
			both(valid(typ, body), false)
		}
	}
	for _, body := range []string{`{}`, `{"anything":[1]}`} {
		both(valid("my_custom_event", body), true)
	}
	both(valid("my_custom_event", `[]`), false)
	long := strings.Repeat("é", 128)
	for _, x := range []struct {
		change func(*Raw)
		want   bool
	}{
		{func(r *Raw) { r.ID = "" }, false},
		{func(r *Raw) { r.ID = long }, true},
		{func(r *Raw) { r.ID = long + "é" }, false},
		{func(r *Raw) { r.Type = long }, true},
		{func(r *Raw) { r.Type = long + "é" }, false},
		{func(r *Raw) { r.Source = "" }, false},
		{func(r *Raw) { r.Source = long + long }, true},
		{func(r *Raw) { r.Source = long + long + "é" }, false},
		{func(r *Raw) { r.CorrelationID = long + long + "é" }, false},
		{func(r *Raw) { r.CorrelationID = "c" }, true},
		{func(r *Raw) { r.Timestamp = -1 }, false},
		{func(r *Raw) { r.Timestamp = maxCount + 1 }, false},
		{func(r *Raw) { r.Metadata = json.RawMessage(`{"k":1}`) }, true},
		{func(r *Raw) { r.Metadata = json.RawMessage(`[1]`) }, false},
	} {
		r := valid("my_custom_event", `{}`)
		x.change(&r)
		both(r, x.want)
	}
}

// exotic are whole numbers that are not written as such: the schema takes them, Go's decoder does not, and neither do we.
var exotic = regexp.MustCompile(`[0-9][.eE]`)

func FuzzCheck(f *testing.F) {
	for typ, body := range written {
		f.Add(typ, []byte(body))
	}
	for typ, bodies := range wrong {
		for _, body := range bodies {
			f.Add(typ, []byte(body))
		}
	}
	f.Add("error", []byte(`{"message":"a","severity":"err\u006fr","message":1}`))
	f.Add("user.point", []byte(`{"position":{"x":1e400,"y":0}}`))
	s := compiled(f)
	f.Fuzz(func(t *testing.T, typ string, body []byte) {
		r := valid(typ, string(body))
		if !json.Valid(body) || !isObject(body) || !fits(typ, maxName) || repeats(body) {
			return // which is not for Check to find out
		}
		ours, theirs := Check(r), against(t, s, r.Append(nil))
		if ours == nil && theirs != nil || ours != nil && theirs == nil && !exotic.Match(body) {
			t.Fatalf("%s: ours %v, the schema's %v", body, ours, theirs)
		}
		if ours == nil {
			if _, err := r.Envelope(); err != nil {
				t.Fatalf("%s is valid and cannot be decoded: %v", body, err)
			}
		}
	})
}

// repeats says whether a name occurs twice, of which Check looks at both and others at the last.
func repeats(object []byte) bool {
	seen := map[string]bool{}
	for name, value := range Members(object) {
		if seen[string(name)] || isObject(value) && repeats(value) {
			return true
		}
		seen[string(name)] = true
	}
	return false
}
