package dispatch_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"vela/turn/dispatch"
)

func TestTheTextOfAnAnswer(t *testing.T) {
	for _, c := range []struct {
		data, path, want string
		found            bool
	}{
		{`{"description":"d","reasoning":"r","summary":"s","text":"t","answer":"a"}`, "", "a", true},
		{`{"description":"d","reasoning":"r","summary":"s","text":"t"}`, "", "t", true},
		{`{"description":"d","reasoning":"r","summary":"s","text":""}`, "", "s", true},
		{`{"description":"d","reasoning":"r","summary":7}`, "", "r", true},
		{`{"description":" d\n"}`, "", "d", true},
		{`{"match": true, "n": 9007199254740993}`, "", `{"match":true,"n":9007199254740993}`, true},
		{`{}`, "", `{}`, true},
		{`{"report":{"text":"deep"},"text":"flat"}`, "report.text", "deep", true},
		{`{"report":{"text":"deep"},"text":"flat"}`, "/report/text", "deep", true},
		{`{"a/b":{"~":["x","y"]}}`, "/a~1b/~0/1", "y", true},
		{`{"list":[{"text":"first"}]}`, "list.0.text", "first", true},
		{`{"list":["first"]}`, "list.1", `{"list":["first"]}`, false},
		{`{"list":["first"],"text":"t"}`, "list.-1", "t", false},
		{`{"n": {"a": [1, 2]}}`, "n", `{"a":[1,2]}`, true},
		{`{"n":null,"text":"t"}`, "n", "t", false},
		{`{"n":"  ","text":"t"}`, "n", "t", false},
		{`{"n":"x","text":"t"}`, "n.deeper", "t", false},
	} {
		path, err := dispatch.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got, found := dispatch.AnswerText(json.RawMessage(c.data), path); got != c.want || found != c.found {
			t.Errorf("%s at %q: %q, %v", c.data, c.path, got, found)
		}
	}
}

func TestLongAnswersComeInPieces(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 8<<10), "x" + strings.Repeat("äö👋🏽", 5000)} {
		all := slices.Collect(dispatch.Pieces(text))
		if strings.Join(all, "") != text {
			t.Errorf("%d bytes are not whole in %d pieces", len(text), len(all))
		}
		for _, p := range all {
			if len(p) > 8<<10 || !utf8.ValidString(p) {
				t.Errorf("a piece of %d bytes, %v", len(p), utf8.ValidString(p))
			}
		}
	}
}
