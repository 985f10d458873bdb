package signal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestIntake(t *testing.T) {
	in := Intake{Source: "http", NewID: func() string { return "new" }}
	const now = 7
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for name, x := range map[string]struct {
		sent, want string
		code       string // of the error that stands for it
	}{
		"as it is":           {`{"id":"i","type":"x","timestamp":5,"source":"s","correlationId":"c","metadata":{"k":1},"payload":{"a":[1]}}`, `{"id":"i","type":"x","timestamp":5,"source":"s","correlationId":"c","metadata":{"k":1},"payload":{"a":[1]}}`, ""},
		"only a type":        {`{"type":"x"}`, `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{}}`, ""},
		"no payload":         {`{"type":"x","payload":null}`, `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{}}`, ""},
		"fields of no use":   {`{"type":"x","id":5,"timestamp":"late","source":"","correlationId":{},"metadata":[]}`, `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{}}`, ""},
		"too long an id":     {`{"type":"x","id":"` + strings.Repeat("i", 129) + `"}`, `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{}}`, ""},
		"half a millisecond": {`{"type":"x","timestamp":5.5}`, `{"id":"new","type":"x","timestamp":5,"source":"http","payload":{}}`, ""},
		"before 1970":        {`{"type":"x","timestamp":-5}`, `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{}}`, ""},
		"other fields":       {`{"type":"x","clients":3}`, `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{}}`, ""},
		"several lines":      {"\ufeff"[:0] + "{\n \"type\": \"x\",\n \"payload\": {\n  \"a\": \"b c\"\n }\n}\n", `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{"a":"b c"}}`, ""},
		"not UTF-8":          {"{\"type\":\"x\",\"payload\":{\"a\":\"\xff\"}}", `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{"a":"` + "\ufffd" + `"}}`, ""},
		"well known":         {`{"type":"thinking","payload":{"agentId":"a","content":"c"}}`, `{"id":"new","type":"thinking","timestamp":7,"source":"http","payload":{"agentId":"a","content":"c"}}`, ""},
		"on a channel":       {`{"type":"thinking","payload":{"agentId":"a","content":"c","channel":"d"}}`, `{"id":"new","type":"thinking","timestamp":7,"source":"http","payload":{"agentId":"a","content":"c","channel":"d"}}`, ""},
		"a name in escapes":  {`{"\u0074ype":"x"}`, `{"id":"new","type":"x","timestamp":7,"source":"http","payload":{}}`, ""},

		"not JSON":           {`hello`, `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"not_json","message":"hello","severity":"warning"}}`, CodeNotJSON},
		"nothing":            {``, `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"not_json","message":"","severity":"warning"}}`, CodeNotJSON},
		"nested too deep":    {deep, `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"not_json","message":"` + deep + `","severity":"warning"}}`, CodeNotJSON},
		"no object":          {`null`, `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"no_type","message":"null","severity":"warning"}}`, CodeNoType},
		"no type":            {`{"id":"i"}`, `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"no_type","message":"{\"id\":\"i\"}","severity":"warning"}}`, CodeNoType},
		"a type of no use":   {`{"type":5}`, `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"no_type","message":"{\"type\":5}","severity":"warning"}}`, CodeNoType},
		"a wrong payload":    {`{"id":"i","type":"thinking","source":"s","correlationId":"c","payload":{"content":"<c>"}}`, `{"id":"i","type":"error","timestamp":7,"source":"s","correlationId":"c","metadata":{"type":"thinking","original":{"content":"<c>"}},"payload":{"code":"invalid_payload","message":"signal: the payload of thinking: agentId is missing","severity":"warning"}}`, CodeInvalidPayload},
		"payload no object":  {`{"type":"x","payload":[1]}`, `{"id":"new","type":"error","timestamp":7,"source":"http","metadata":{"type":"x","original":[1]},"payload":{"code":"invalid_payload","message":"signal: the payload of \"x\" is no object","severity":"warning"}}`, CodeInvalidPayload},
		"too long":           {`{"type":"x","payload":{"a":"` + strings.Repeat("a", MaxSize) + `"}}`, `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"too_large","message":"a signal of 524319 bytes, which is too long","severity":"warning"}}`, CodeTooLarge},
		"a long text":        {strings.Repeat("a", 2000), `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"not_json","message":"` + strings.Repeat("a", 1024) + `…","severity":"warning"}}`, CodeNotJSON},
		"long text in UTF-8": {"a" + strings.Repeat("é", 1000), `{"id":"new","type":"error","timestamp":7,"source":"raw","payload":{"code":"not_json","message":"a` + strings.Repeat("é", 511) + `…","severity":"warning"}}`, CodeNotJSON},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := in.Accept([]byte(x.sent), now)
			if got := string(r.Append(nil)); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
			if (err != nil) != (x.code != "") {
				t.Errorf("the error is %v, want one: %v", err, x.code != "")
			}
			if err := Check(r); err != nil {
				t.Errorf("what was made of it is not valid: %v", err)
			}
		})
	}
}

func TestWhatIntakeMakesIsTheCallersOwn(t *testing.T) {
	body := []byte(`{"type":"x","metadata":{"m":1},"payload":{"a":1}}`)
	r, err := Intake{Source: "s", NewID: func() string { return "n" }}.Accept(body, 1)
	if err != nil {
		t.Fatal(err)
	}
	before := string(r.Append(nil))
	for i := range body {
		body[i] = '!'
	}
	if after := string(r.Append(nil)); after != before {
		t.Errorf("it became %s", after)
	}
}

func TestChannelTravelsInThePayload(t *testing.T) {
	e := Envelope{ID: "1", Timestamp: 2, Source: "s", Payload: Thinking{AgentID: "a", Content: "c"},
		Channel: &Channel{Name: "telegram", SessionKey: "k", Meta: json.RawMessage(`{"heartbeat":true}`)}}
	text, err := json.Marshal(e)
	if want := `{"id":"1","type":"thinking","timestamp":2,"source":"s","payload":{"agentId":"a","content":"c","channel":"telegram","sessionKey":"k","_meta":{"heartbeat":true}}}`; err != nil || string(text) != want {
		t.Fatalf("%v\n got %s\nwant %s", err, text, want)
	}
	var back Envelope
	if err := json.Unmarshal(text, &back); err != nil || back.Channel == nil || back.Channel.SessionKey != "k" || string(back.Channel.Meta) != `{"heartbeat":true}` {
		t.Errorf("%v, came back as %#v", err, back)
	}
	for _, e := range []Envelope{
		{Payload: Thinking{}, Channel: &Channel{}},
		{Payload: Thinking{}},
		{Payload: Other{Name: "x", Body: json.RawMessage(`{"channel":"c"}`)}},
	} {
		r, err := e.Raw()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := r.Envelope(); err != nil || back.Channel != nil {
			t.Errorf("%s: %v, came back as %#v", r.Payload, err, back)
		}
	}
	if r, err := (Envelope{Payload: Other{Name: "x"}, Channel: &Channel{Name: "c"}}).Raw(); err != nil || string(r.Payload) != `{"channel":"c"}` {
		t.Errorf("%v: an empty payload became %s", err, r.Payload)
	}
}

func TestMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		` { "a" : 1 , "b":{"c":[1,{"d":"}"}]} ,"e\"":"x\\"}`: `a=1 b={"c":[1,{"d":"}"}]} e"="x\\" `,
		`{"a":true,"a":null}`:                                `a=true a=null `,
		`[1]`:                                                "",
		`{"\u0061":-1.5e3}`:                                  "a=-1.5e3 ",
	} {
		var got strings.Builder
		for name, value := range Members([]byte(text)) {
			got.WriteString(string(name) + "=" + string(value) + " ")
		}
		if got.String() != want {
			t.Errorf("%s: %q, want %q", text, got.String(), want)
		}
	}
}

func TestSet(t *testing.T) {
	for _, x := range [][4]string{
		{`{}`, "a", `1`, `{"a":1}`},
		{` { } `, "a", `1`, `{"a":1}`},
		{`{"a":1}`, "b", `{}`, `{"a":1,"b":{}}`},
		{` {"a":1 } `, "b", `2`, ` {"a":1 ,"b":2}`},
		{`{"a":1,"b":2}`, "a", `"x"`, `{"a":"x","b":2}`},
		{`{"a":1,"a":2}`, "a", `3`, `{"a":1,"a":3}`},
		{`{"\u0061":1}`, "a", `3`, `{"\u0061":3}`},
		{`{"a":{"b":"}"}}`, "b", `3`, `{"a":{"b":"}"},"b":3}`},
		{`{}`, `"\`, `3`, `{"\"\\":3}`},
	} {
		before := strings.Clone(x[0])
		if got := Set(json.RawMessage(x[0]), x[1], json.RawMessage(x[2])); string(got) != x[3] || !json.Valid(got) || x[0] != before {
			t.Errorf("%s with %q: %s, want %s", x[0], x[1], got, x[3])
		}
	}
}

// FuzzIntake: whatever comes, what is made of it is valid, and its members are those that encoding/json finds.
func FuzzIntake(f *testing.F) {
	for typ, body := range written {
		f.Add([]byte(`{"id":"i","type":"` + typ + `","timestamp":5,"payload":` + body + `}`))
	}
	for _, s := range []string{`{`, `{"`, `{"\`, `{"a`, `{"a":`, `{"a":}`, "{\"a\":\"\xff\"}", `{"type":"x","payload":{"a":"\ud83d"}}`, `[[`, `{"type":"error","timestamp":1e300}`, `{"type":"\ud800"}`} {
		f.Add([]byte(s))
	}
	s := compiled(f)
	in := Intake{Source: "s", NewID: func() string { return "n" }}
	f.Fuzz(func(t *testing.T, body []byte) {
		for range Members(body) { // does not panic
		}
		r, _ := in.Accept(body, 5)
		text := r.Append(nil)
		if !utf8.Valid(text) || bytes.ContainsAny(text, "\n\r") {
			t.Fatalf("%q", text)
		}
		if err := Check(r); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := against(t, s, text); err != nil && !repeats(r.Payload) {
			t.Fatalf("%s: %v", text, err)
		}
		e, err := r.Envelope()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := e.Raw(); err != nil || again.Type != r.Type {
			t.Fatalf("%s: %v", text, err)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(r.Payload, &object) != nil {
			t.Fatalf("%s is no object", r.Payload)
		}
		found := map[string]string{}
		for name, value := range Members(r.Payload) {
			found[string(name)] = string(value)
		}
		if len(found) != len(object) {
			t.Fatalf("%s: %d members, want %d", r.Payload, len(found), len(object))
		}
		for name, value := range object {
			if found[name] != string(value) {
				t.Fatalf("%s: %q is %s, want %s", r.Payload, name, found[name], value)
			}
		}
	})
}
