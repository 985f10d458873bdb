package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vela/protocol/signal"
)

// begin is a time to count from.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// chainOf is the filters of a wire as they are written.
func chainOf(t testing.TB, filters string) chain {
	t.Helper()
	w := parse(t, `{"choreographies":[{"id":"c","on":"x"}],"wires":[{"id":"w","fromZone":"signal-type","fromId":"x","toZone":"choreographer","toId":"c","filters":[`+filters+`]}]}`)
	return newChain(w.config.Wires[0].Filters)
}

func TestFilters(t *testing.T) {
	type in struct {
		at      int // ms from the begin
		payload string
	}
	every := func(ms int, payloads ...string) []in {
		var all []in
		for i, p := range payloads {
			all = append(all, in{i * ms, p})
		}
		return all
	}
	for name, x := range map[string]struct {
		filters string
		in      []in
		want    []string // what passes, "-" for what does not
	}{
		"throttle: the first passes, then one an interval": {
			`{"type":"throttle","intervalMs":100}`, []in{{0, `1`}, {1, `2`}, {99, `3`}, {100, `4`}, {150, `5`}, {250, `6`}, {349, `7`}},
			[]string{`1`, "-", "-", `4`, "-", `6`, "-"},
		},
		"throttle of no time":          {`{"type":"throttle","intervalMs":0}`, every(0, `1`, `2`), []string{`1`, `2`}},
		"sample: the Nth and the 2Nth": {`{"type":"sample","every":3}`, every(1, `1`, `2`, `3`, `4`, `5`, `6`, `7`), []string{"-", "-", `3`, "-", "-", `6`, "-"}},
		"sample of each":               {`{"type":"sample","every":1}`, every(1, `1`, `2`), []string{`1`, `2`}},
		"delta: measured from what passed last": {
			`{"type":"delta","path":"n","threshold":5}`, every(1, `{"n":10}`, `{"n":14}`, `{"n":15}`, `{"n":19}`, `{"n":11}`, `{"n":10}`),
			[]string{`{"n":10}`, "-", `{"n":15}`, "-", "-", `{"n":10}`},
		},
		"delta: what is no number does not pass, and is not measured from": {
			`{"type":"delta","path":"signal.o.n","threshold":1}`, every(1, `{}`, `{"o":{"n":"5"}}`, `{"o":{"n":5}}`, `{"o":{"n":null}}`, `{"o":{"n":6}}`),
			[]string{"-", "-", `{"o":{"n":5}}`, "-", `{"o":{"n":6}}`},
		},
		"delta of nothing":       {`{"type":"delta","path":"n","threshold":0}`, every(1, `{"n":1}`, `{"n":1}`), []string{`{"n":1}`, `{"n":1}`}},
		"when":                   {`{"type":"when","clause":{"n":{"gt":1}}}`, every(1, `{"n":1}`, `{"n":2}`), []string{"-", `{"n":2}`}},
		"map":                    {`{"type":"map","mappings":[{"from":"a","to":"b"}]}`, every(1, `{"a":{"x":1}}`), []string{`{"a":{"x":1},"b":{"x":1}}`}},
		"map always passes":      {`{"type":"map","mappings":[{"from":"none","to":"b"}]}`, every(1, `{"b":1}`), []string{`{"b":1}`}},
		"map changes places":     {`{"type":"map","mappings":[{"from":"a","to":"b"},{"from":"b","to":"a"}]}`, every(1, `{"a":1,"b":2}`), []string{`{"a":2,"b":1}`}},
		"map makes objects":      {`{"type":"map","mappings":[{"from":"a","to":"signal.o.p.q"},{"from":"a","to":"a.b"}]}`, every(1, `{"a":1,"o":{"x":2}}`), []string{`{"a":{"b":1},"o":{"x":2,"p":{"q":1}}}`}},
		"map knows the type":     {`{"type":"map","mappings":[{"from":"signal.type","to":"kind"}]}`, every(1, `{}`), []string{`{"kind":"x"}`}},
		"map takes null":         {`{"type":"map","mappings":[{"from":"a","to":"b"}]}`, every(1, `{"a":null}`), []string{`{"a":null,"b":null}`}},
		"no filter":              {``, every(1, `1`), []string{`1`}},
		"the first drop ends it": {`{"type":"when","clause":{"n":{"gt":1}}},{"type":"sample","every":2}`, every(1, `{"n":2}`, `{"n":0}`, `{"n":3}`), []string{"-", "-", `{"n":3}`}},
		"in their order":         {`{"type":"sample","every":2},{"type":"when","clause":{"n":{"gt":1}}}`, every(1, `{"n":2}`, `{"n":0}`, `{"n":3}`, `{"n":4}`), []string{"-", "-", "-", `{"n":4}`}},
		"the next sees the map":  {`{"type":"map","mappings":[{"from":"a","to":"n"}]},{"type":"when","clause":{"n":{"gt":1}}}`, every(1, `{"a":2}`, `{"n":2}`, `{"n":2,"a":1}`), []string{`{"a":2,"n":2}`, `{"n":2}`, "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := chainOf(t, x.filters)
			var got []string
			for _, one := range x.in {
				before := strings.Clone(one.payload)
				s, passes := c.apply(begin.Add(time.Duration(one.at)*time.Millisecond), sample{"x", json.RawMessage(one.payload)})
				if !passes {
					s.payload = json.RawMessage("-")
				}
				got = append(got, string(s.payload))
				if one.payload != before {
					t.Errorf("the payload became %s", one.payload)
				}
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
		})
	}
}

// What maps copy can double a payload with each of them; it may not grow beyond what a signal may be.
func TestMapsDoNotGrowWithoutBound(t *testing.T) {
	var filters []string
	for i := range 20 {
		var mappings []string
		for j := range 64 {
			mappings = append(mappings, fmt.Sprintf(`{"from":"a","to":"a.b%d_%d"}`, i, j))
		}
		filters = append(filters, `{"type":"map","mappings":[`+strings.Join(mappings, ",")+`]}`)
	}
	s, passes := chainOf(t, strings.Join(filters, ",")).apply(begin, sample{"x", json.RawMessage(`{"a":{"x":"` + strings.Repeat("y", 1000) + `"}}`)})
	if !passes || len(s.payload) > signal.MaxSize+1000 || !json.Valid(s.payload) {
		t.Errorf("passes %v, %d bytes, JSON %v", passes, len(s.payload), json.Valid(s.payload))
	}
}

// A signal that drops costs no memory, and neither does one that passes without a change.
func TestFiltersNeedNoMemory(t *testing.T) {
	c := chainOf(t, `{"type":"throttle","intervalMs":0},{"type":"sample","every":1},{"type":"delta","path":"o.n","threshold":0},{"type":"when","clause":{"signal.s":{"contains":"a long text to look for in a longer text","matches":"^a.*z$"},"o.n":{"gt":1,"lt":9},"type":{"equals":"x"}}}`)
	s := sample{"x", json.RawMessage(`{"s":"a long text to look for in a longer text z","o":{"n":5.25}}`)}
	if _, passes := c.apply(begin, s); !passes {
		t.Fatal("it does not pass")
	}
	if n := testing.AllocsPerRun(100, func() { c.apply(begin, s) }); n > 0 {
		t.Errorf("%v allocations a signal", n)
	}
}
