package dispatch_test

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"vela/turn/dispatch"
)

func FuzzSignal(f *testing.F) {
	f.Add([]byte(`{"status":"waiting","dispatch_id":1,"case_id":"C1","step":"F0_RECALL","prompt_path":"/p","artifact_path":"/a","timestamp":"2026-02-16T12:00:00Z","error":""}`))
	f.Add([]byte(`{"status":"error","dispatch_id":-1}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := dispatch.DecodeSignal(b)
		if err != nil {
			if s != (dispatch.Signal{}) {
				t.Errorf("%q: %+v and %v", b, s, err)
			}
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := dispatch.DecodeSignal(again); err != nil || got != s {
			t.Errorf("%q: %+v becomes %+v, %v", b, s, got, err)
		}
	})
}

func FuzzArtifact(f *testing.F) {
	f.Add([]byte(`{"dispatch_id":1,"data":{"answer":"yes"}}`), int64(1), "")
	f.Add([]byte(`{"dispatch_id":1,"data":{"a":[{"b":"c"}]}}`), int64(1), "a.0.b")
	f.Add([]byte(`{"dispatch_id":01,"data":null}`), int64(1), "/")
	f.Add([]byte("{\"dispatch_id\":1,\"data\":{\"answer\":\"\xff\"}}"), int64(1), "answer")
	f.Add([]byte(`{"dispatch_id":1e0,"data":{}}`), int64(1), "x")
	f.Fuzz(func(t *testing.T, b []byte, id int64, at string) {
		data, err := dispatch.Unwrap(b, id)
		if err != nil {
			if data != nil || !errors.Is(err, dispatch.ErrNotYet) && !errors.Is(err, dispatch.ErrInvalid) {
				t.Errorf("%q: %q, %v", b, data, err)
			}
			return
		}
		var object map[string]any
		if json.Unmarshal(data, &object) != nil || object == nil || !utf8.Valid(data) {
			t.Errorf("%q: the data is %q", b, data)
		}
		path, err := dispatch.ParsePath(at)
		if err != nil {
			return
		}
		text, _ := dispatch.AnswerText(data, path)
		if text == "" || !utf8.ValidString(text) {
			t.Errorf("%q at %q: the text is %q", b, at, text)
		}
	})
}
