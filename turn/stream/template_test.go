package stream

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestTemplate(t *testing.T) {
	const learnt = `{"id":"1","delta":{"text": "Hello"},"n":null,"pad":"xyz","end":true}`
	for object, want := range map[string]string{
		learnt: "Hello",
		`{"id":"1","delta":{"text": ""},"n":null,"pad":"","end":true}`:                       "",
		`{"id":"1","delta":{"text": "grüß 👋"},"n":null,"pad":"z","end":true}`:                "grüß 👋",
		`{"id":"1","delta":{"text": "\"\\\n\u00e4"},"n":null,"pad":"z","end":true}`:          "\"\\\nä",
		"{\"id\":\"1\",\"delta\":{\"text\": \"\n\"},\"n\":null,\"pad\":\"z\",\"end\":true}":  "no match",
		`{"id":"1","delta":{"text": "\"\\\u00e4"},"n":null,"pad":"z","end":true}`:            "\"\\ä",
		`{"id":"1","delta":{"text": "\x"},"n":null,"pad":"z","end":true}`:                    "no match",
		`{"id":"1","delta":{"text": "a"},"n":null,"pad":"\n","end":true}`:                    "no match",
		`{"id":"1","delta":{"text": "a"},"n":null,"pad":"z","end":true} `:                    "no match",
		`{"id":"1","delta":{"text": "a"},"n":null,"pad":"z","end":tru`:                       "no match",
		`{"id":"1","delta":{"text": "a","n":null,"pad":"z","end":true}`:                      "no match",
		`{"id":"2","delta":{"text": "a"},"n":null,"pad":"z","end":true}`:                     "no match",
		`{"id":"1","delta":{"text":"a"},"n":null,"pad":"z","end":true}`:                      "no match",
		`{"id":"1","delta":{"text": "a`:                                                      "no match",
		`{"id":"1","delta":{"text": "a\`:                                                     "no match",
		"{\"id\":\"1\",\"delta\":{\"text\": \"\xff\"},\"n\":null,\"pad\":\"\",\"end\":true}": "no match",
		``: "no match",
	} {
		template, ok := Learn([]byte(learnt), "text", "pad", "not there")
		if !ok {
			t.Fatal("nothing was learnt")
		}
		got, ok := template.Match([]byte(object))
		if !ok {
			got = "no match"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", object, got, want)
		}
	}
	if _, ok := new(Template).Match([]byte(learnt)); ok {
		t.Error("an empty template matches")
	}
	for _, none := range []string{``, `{}`, `{"text":1}`, `{"text":"`, `{"text":"a`, `{"text"`, `{"a":"text"}`} {
		if _, ok := Learn([]byte(none), "text"); ok {
			t.Errorf("%s: something was learnt", none)
		}
	}
}

func TestTemplateWithPadding(t *testing.T) {
	template, ok := Learn([]byte(`{"delta":{"text":"a"}  }`), "text")
	if !ok {
		t.Fatal("nothing was learnt")
	}
	for object, want := range map[string]bool{
		`{"delta":{"text":"b"}}`: true, `{"delta":{"text":"b"} } `: true, `{"delta":{"text":"b" } }`: true,
		`{"delta":{"text":"b"}}}`: false, `{"delta":{"text":"b"}`: false, `{"delta":{"text":"b"},}`: false, `{"delta":{"text":"b`: false,
	} {
		if _, ok := template.Match([]byte(object)); ok != want {
			t.Errorf("%s: %v", object, ok)
		}
	}
}

// FuzzTemplate: whatever matches a template that was checked, encoding/json reads in the same way.
func FuzzTemplate(f *testing.F) {
	f.Add([]byte(`{"a":1,"text":"x","pad":"y"}`), []byte(`{"a":1,"text":"z\n","pad":""}`))
	f.Add([]byte(`{"d":{"text":"x"} }`), []byte(`{"d":{"text":""}}`))
	f.Add([]byte(`{"text":"x","d":{"text":"y"}}`), []byte(`{"text":"z","d":{"text":"y"}}`))
	type object struct {
		A    any
		Text string `json:"text"`
		D    struct {
			Text string `json:"text"`
		} `json:"d"`
	}
	f.Fuzz(func(t *testing.T, learnt, next []byte) {
		template, ok := Learn(learnt, "text", "pad")
		if !ok {
			return
		}
		var shape, probed object
		if json.Unmarshal(learnt, &shape) != nil || shape.Text == "probe" || json.Unmarshal(template.Probe("probe"), &probed) != nil {
			return
		}
		if shape.Text = "probe"; !reflect.DeepEqual(shape, probed) {
			return
		}
		text, ok := template.Match(next)
		if !ok {
			return
		}
		var got object
		if err := json.Unmarshal(next, &got); err != nil {
			t.Fatalf("%q matches %q: %v", next, learnt, err)
		}
		if shape.Text = text; !reflect.DeepEqual(shape, got) {
			t.Fatalf("%q matches %q: %+v, and is %+v", next, learnt, shape, got)
		}
	})
}

func TestObject(t *testing.T) {
	for text, want := range map[string]string{
		"": `{}`, " \n": `{}`, `{}`: `{}`, ` {"a":1} `: `{"a":1}`, `{"a":`: `{"input":"{\"a\":"}`, `[1]`: `{"input":"[1]"}`, `null`: `{"input":"null"}`,
		`words "of" a model`: `{"input":"words \"of\" a model"}`, "\xff": "{\"input\":\"\ufffd\"}",
	} {
		got := Object([]byte(text))
		var m map[string]any
		var w map[string]any
		if json.Unmarshal(got, &m) != nil || json.Unmarshal([]byte(want), &w) != nil || !reflect.DeepEqual(m, w) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"": `{}`, " \n": `{}`, ` {"a":1} `: `{"a":1}`, `{"a":`: `{"a":`, "\xff": "\ufffd"} {
		if got := Input([]byte(text)); string(got) != want {
			t.Errorf("%q as it is: %s, want %s", text, got, want)
		}
	}
	if got := Object([]byte("{\"a\":\"\xff\"}")); !json.Valid(got) || !utf8.Valid(got) {
		t.Errorf("got %s", got)
	}
}
