package script_test

import (
	"testing"

	"vela/gateway/script"
)

func TestDiff(t *testing.T) {
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	for _, c := range []struct{ want, got, diff string }{
		{`{"a":1,"b":[true,null]}`, ` {"b" : [true, null], "a": 1.0 }`, ""},
		{`{"a":"<any>","b":"<any>","c":"<any>"}`, `{"a":null,"b":{"x":1},"c":"s"}`, ""},
		{`["<text>","<number>","<uuid>","<~turn is>"]`, `["",-1e3,"` + id + `","A turn is still running."]`, ""},
		{`["<a:text>","<a:text>","<!a>"]`, `["x","x","y"]`, ""},
		{`["<a:any>","<a:any>"]`, `[{"k":[1]},{"k":[1]}]`, ""},

		{`{"a":1}`, `{"a":1`, "it is not JSON: it ends too early"},
		{`{"a":1}`, `{"a":1}{}`, "it is not JSON: more follows the value"},
		{`{"a":1}`, `[]`, "at the top: expected an object, got []"},
		{`[1]`, `{"a":"b"}`, `at the top: expected an array, got {"a":"b"}`},
		{`1`, `2`, "at the top: expected 1, got 2"},
		{`1`, `"1"`, `at the top: expected 1, got "1"`},
		{`null`, `false`, "at the top: expected null, got false"},
		{`100000000000000000001`, `100000000000000000001.5`, ""}, // numbers are compared as float64
		{`{"type":"a","payload":{"text":"x"}}`, `{"type":"b","payload":{"seq":1}}`,
			"at payload.text: expected \"x\", but the field is missing\nat payload.seq: unexpected field, 1\nat type: expected \"a\", got \"b\""},
		{`{"items":[{"a":1},2]}`, `{"items":[{"a":2}]}`, "at items[0].a: expected 1, got 2\nat items: expected 2 elements, got 1"},
		{`["<text>","<number>","<uuid>","<~x>"]`, `[1,"1","` + id + `0","abc"]`,
			"at [0]: expected <text>, got 1\nat [1]: expected <number>, got \"1\"\nat [2]: expected <uuid>, got \"" + id + "0\"\nat [3]: expected <~x>, got \"abc\""},
		{`["<uuid>"]`, `["0123456789ABCDEF"]`, `at [0]: expected <uuid>, got "0123456789ABCDEF"`},
		{`["<~x>"]`, `[["x"]]`, `at [0]: expected <~x>, got ["x"]`},
		{`{"x":"<a:uuid>"}`, `{"x":7}`, `at x: expected <a:uuid>, got 7`},
		{`{"x":"<~w>","y":"<!n>"}`, `{}`, "at x: expected <~w>, but the field is missing\nat y: expected <!n>, but the field is missing"},
		{`["<a:text>","<a:text>"]`, `["x","y"]`, `at [1]: expected "x" as before, got "y"`},
		{`["<a:text>","<!a>"]`, `["x","x"]`, `at [1]: expected anything but "x"`},
		{`["<!a>"]`, `["x"]`, "at [0]: nothing was called a before"},
		{`[1,1,1,1,1,1,1,1,1,1]`, `[2,2,2,2,2,2,2,2,2,2]`, "at [0]: expected 1, got 2\nat [1]: expected 1, got 2\nat [2]: expected 1, got 2\nat [3]: expected 1, got 2\n" +
			"at [4]: expected 1, got 2\nat [5]: expected 1, got 2\nat [6]: expected 1, got 2\nat [7]: expected 1, got 2"},
	} {
		diff, err := script.Diff(c.want, c.got)
		if err != nil || diff != c.diff {
			t.Errorf("%s and %s:\n%s\nwant\n%s\nand the error %v", c.want, c.got, diff, c.diff, err)
		}
	}
	if _, err := script.Diff(`"<x>"`, `1`); err == nil {
		t.Error("a placeholder that does not exist is taken")
	}
}
