package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// parseClause reads a clause that stands by itself. Its error says what is wrong.
func parseClause(text []byte) (Clause, error) {
	if !json.Valid(text) {
		return Clause{}, errors.New("a clause is an object or a list of objects")
	}
	c := Clause{text: bytes.Clone(text)}
	return c, c.compile()
}

func TestWhen(t *testing.T) {
	const payload = `{"n":5,"s":"hello world","e":"a\u0062c","z":"","t":true,"f":false,"nil":null,"o":{"deep":{"n":1.5}},"l":[10,{"x":"y"}],"exp":5e0,"neg":-0}`
	for _, x := range []struct {
		clause string
		want   bool
	}{
		// How clauses go together.
		{`null`, true}, {`{}`, true}, {`[]`, true}, {`[{}]`, true},
		{`{"n":{"gt":1},"s":{"contains":"hello"}}`, true}, {`{"n":{"gt":1},"s":{"contains":"bye"}}`, false},
		{`[{"n":{"gt":9}},{"n":{"lt":9}}]`, true}, {`[{"n":{"gt":9}},{"n":{"lt":1}}]`, false},
		{`{"n":{"gt":1,"lt":9}}`, true}, {`{"n":{"gt":1,"lt":3}}`, false}, {`{"none":{}}`, true},
		// Paths.
		{`{"signal.n":{"equals":5}}`, true}, {`{"n":{"equals":5}}`, true}, {`{"o.deep.n":{"equals":1.5}}`, true}, {`{"signal.o.deep.n":{"equals":1.5}}`, true},
		{`{"o.none.n":{"exists":true}}`, false}, {`{"n.x":{"exists":true}}`, false}, {`{"s.length":{"exists":true}}`, false},
		{`{"l.0":{"equals":10}}`, true}, {`{"l.1.x":{"equals":"y"}}`, true}, {`{"l.2":{"exists":true}}`, false}, {`{"l.01":{"exists":true}}`, false}, {`{"l.-1":{"exists":true}}`, false},
		{`{"type":{"equals":"tool_call"}}`, true}, {`{"signal.type":{"equals":"tool_call"}}`, true}, {`{"type":{"equals":"x"}}`, false},
		{`{"type":{"matches":"^tool_"}}`, true}, {`{"type":{"contains":"call"}}`, true}, {`{"type":{"not":{"contains":"call"}}}`, false}, {`{"type":{"exists":true}}`, true},
		{`{"type":{"exists":false}}`, false}, {`{"type":{"gt":1}}`, false}, {`{"type":{"lt":1}}`, false}, {`{"type":{"equals":null}}`, false}, {`{"type":{"matches":"x"}}`, false},
		// exists
		{`{"n":{"exists":true}}`, true}, {`{"n":{"exists":false}}`, false}, {`{"none":{"exists":true}}`, false}, {`{"none":{"exists":false}}`, true},
		{`{"nil":{"exists":true}}`, false}, {`{"nil":{"exists":false}}`, true}, {`{"f":{"exists":true}}`, true}, {`{"z":{"exists":true}}`, true},
		// equals
		{`{"n":{"equals":5}}`, true}, {`{"n":{"equals":5.0}}`, true}, {`{"exp":{"equals":5}}`, true}, {`{"n":{"equals":"5"}}`, false}, {`{"n":{"equals":4}}`, false}, {`{"neg":{"equals":0}}`, true},
		{`{"s":{"equals":"hello world"}}`, true}, {`{"e":{"equals":"abc"}}`, true}, {`{"s":{"equals":"hel\u006co world"}}`, true}, {`{"z":{"equals":""}}`, true}, {`{"z":{"equals":false}}`, false},
		{`{"t":{"equals":true}}`, true}, {`{"t":{"equals":false}}`, false}, {`{"t":{"equals":1}}`, false}, {`{"f":{"equals":false}}`, true}, {`{"f":{"equals":null}}`, false},
		{`{"nil":{"equals":null}}`, true}, {`{"none":{"equals":null}}`, false}, {`{"none":{"equals":""}}`, false},
		{`{"o":{"equals":{"deep":{"n":1.5}}}}`, false}, {`{"l":{"equals":[10,{"x":"y"}]}}`, false},
		// contains
		{`{"s":{"contains":"lo w"}}`, true}, {`{"s":{"contains":""}}`, true}, {`{"s":{"contains":"LO"}}`, false}, {`{"e":{"contains":"bc"}}`, true}, {`{"n":{"contains":"5"}}`, false}, {`{"l":{"contains":"10"}}`, false}, {`{"none":{"contains":""}}`, false},
		// matches
		{`{"s":{"matches":"^hel+o"}}`, true}, {`{"s":{"matches":"world$"}}`, true}, {`{"s":{"matches":"^world"}}`, false}, {`{"e":{"matches":"^abc$"}}`, true}, {`{"n":{"matches":"5"}}`, false}, {`{"s":{"matches":""}}`, true}, {`{"none":{"matches":""}}`, false},
		// gt and lt
		{`{"n":{"gt":4.9}}`, true}, {`{"n":{"gt":5}}`, false}, {`{"n":{"lt":5}}`, false}, {`{"n":{"lt":5.1}}`, true}, {`{"s":{"gt":1}}`, false}, {`{"s":{"lt":1}}`, false}, {`{"nil":{"lt":1}}`, false}, {`{"none":{"lt":1}}`, false}, {`{"t":{"gt":0}}`, false},
		// not is evaluated first and alone.
		{`{"n":{"not":{"equals":5}}}`, false}, {`{"n":{"not":{"equals":6}}}`, true}, {`{"n":{"not":{"equals":6},"equals":7}}`, true}, {`{"n":{"gt":9,"not":{"gt":9}}}`, true}, {`{"none":{"not":{"exists":true}}}`, true},
		{`{"n":{"not":{"not":{"equals":5}}}}`, true}, {`{"n":{"not":{}}}`, false},
	} {
		c, err := parseClause([]byte(x.clause))
		if err != nil {
			t.Errorf("%s: %v", x.clause, err)
			continue
		}
		if got := c.Holds(raw("tool_call", payload)); got != x.want {
			t.Errorf("%s is %v", x.clause, got)
		}
	}
}

func TestClausesThatAreNone(t *testing.T) {
	for text, says := range map[string]string{
		`7`: "an object or a list", `{`: "an object or a list", `[7]`: "an object or a list", `{"a":1}`: "operators are an object", `{"a":{"is":1}}`: "no such operator",
		`{"a":{"exists":1}}`: "true or false", `{"a":{"contains":1}}`: "a string", `{"a":{"matches":null}}`: "a string", `{"a":{"matches":"(?<x"}}`: "error parsing", `{"a":{"gt":"1"}}`: "a number", `{"a":{"lt":null}}`: "a number",
		`{"a":` + strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 41): "16 deep",
	} {
		if _, err := parseClause([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// FuzzWhen: no clause and no payload make it panic, and a not turns each test round.
func FuzzWhen(f *testing.F) {
	f.Add([]byte(`{"a.b":{"equals":"x","contains":"x"}}`), []byte(`{"a":{"b":"x"}}`))
	f.Add([]byte(`[{"a":{"not":{"matches":"^.$"}}},{"signal.type":{"gt":1}}]`), []byte(`{"a":"\ud83d"}`))
	f.Add([]byte(`{"a.0.b":{"lt":1e400}}`), []byte(`{"a":[{"b":1e400}]}`))
	f.Fuzz(func(t *testing.T, clause, payload []byte) {
		c, err := parseClause(clause)
		if err != nil || !json.Valid(payload) || len(payload) == 0 {
			return
		}
		s := sample{"x", payload}
		c.holds(s)
		for _, group := range c.any {
			for _, e := range group {
				inner := e.test
				if turned := (entry{e.path, test{not: &inner}}); turned.holds(s) == e.holds(s) {
					t.Fatalf("%s: %s is as true as its opposite", payload, clause)
				}
			}
		}
	})
}
