package pipeline

import (
	"encoding/json"
	"fmt"
	"testing"
)

// How often each wire, each filter of its chain and each choreography lets signals pass is what a run is watched by.
func TestWhatPassesIsCounted(t *testing.T) {
	const begun = `{"running":true,"count":0,"dropped":0,"wires":[{"id":"s","seen":0,"passed":0},{"id":"u","seen":0,"passed":0},` +
		`{"id":"w","seen":0,"passed":0,"filters":[{"type":"when","seen":0,"passed":0},{"type":"sample","seen":0,"passed":0},{"type":"map","seen":0,"passed":0}]},` +
		`{"id":"v","seen":0,"passed":0},{"id":"t","seen":0,"passed":0}],` +
		`"choreographies":[{"id":"a","seen":0,"performed":0},{"id":"b","seen":0,"performed":0}]}`
	wiring := func(every int) *Wiring {
		return parse(t, fmt.Sprintf(`{
			"choreographies": [{"id": "a", "on": "x", "when": {"n": {"lt": 7}}}, {"id": "b", "on": "y"}],
			"wires": [
				{"id": "s", "fromZone": "signal", "fromId": "one", "toZone": "signal-type", "toId": "x"},
				{"id": "u", "fromZone": "signal", "fromId": "its name", "toZone": "signal-type", "toId": "x"},
				`+typed("w", "x", "a", `{"type":"when","clause":{"n":{"gt":2}}},{"type":"sample","every":%d},{"type":"map","mappings":[{"from":"n","to":"m"}]}`)+`,
				`+typed("v", "z", "a", "")+`,
				{"id": "t", "fromZone": "choreographer", "fromId": "a", "toZone": "theme", "toId": "dusk"}]}`, every))
	}
	p := New(wiring(2))
	status := func(why, want string) {
		t.Helper()
		if got, err := json.Marshal(p.Status()); err != nil || string(got) != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", why, err, got, want)
		}
	}
	status("without a run", `{"running":false,"count":0,"dropped":0,"wires":[],"choreographies":[]}`)
	p.Start()
	status("at first", begun)
	for n := range 9 { // 3 … 8 pass the first filter, 4, 6 and 8 the others, and 4 and 6 are performed
		p.Take(begin, "one", raw("x", fmt.Sprintf(`{"n":%d}`, n)))
	}
	named := raw("x", `{"n":0}`)
	named.Source = "its name"
	p.Take(begin, "one", named)                 // by two wires at once
	p.Take(begin, "other", named)               // by its name alone
	p.Take(begin, "other", raw("x", `{"n":5}`)) // no wire is its
	p.Take(begin, "other", raw("y", `{}`))      // its own type
	p.Take(begin, "other", raw("z", `{}`))      // not performed, for want of an n
	const gone = `{"running":true,"count":13,"dropped":0,"wires":[{"id":"s","seen":10,"passed":10},{"id":"u","seen":2,"passed":2},` +
		`{"id":"w","seen":11,"passed":3,"filters":[{"type":"when","seen":11,"passed":6},{"type":"sample","seen":6,"passed":3},{"type":"map","seen":3,"passed":3}]},` +
		`{"id":"v","seen":1,"passed":1},{"id":"t","seen":2,"passed":2}],` +
		`"choreographies":[{"id":"a","seen":4,"performed":2},{"id":"b","seen":1,"performed":1}]}`
	status("after a while", gone)
	p.Load(wiring(2))
	status("with the same wiring again", gone)
	p.Load(wiring(3)) // another chain begins at 0, and nothing else
	status("with another filter", `{"running":true,"count":13,"dropped":0,"wires":[{"id":"s","seen":10,"passed":10},{"id":"u","seen":2,"passed":2},`+
		`{"id":"w","seen":0,"passed":0,"filters":[{"type":"when","seen":0,"passed":0},{"type":"sample","seen":0,"passed":0},{"type":"map","seen":0,"passed":0}]},`+
		`{"id":"v","seen":1,"passed":1},{"id":"t","seen":2,"passed":2}],`+
		`"choreographies":[{"id":"a","seen":4,"performed":2},{"id":"b","seen":1,"performed":1}]}`)
	p.Load(parse(t, `{"choreographies": [{"id": "b", "on": "y"}, {"id": "new", "on": "y"}, {"id": "a", "on": "x"}]}`))
	status("with one more", `{"running":true,"count":13,"dropped":0,"wires":[],`+
		`"choreographies":[{"id":"b","seen":1,"performed":1},{"id":"new","seen":0,"performed":0},{"id":"a","seen":4,"performed":2}]}`)
	p.Stop()
	p.Load(wiring(2))
	p.Start()
	status("in another run", begun)
}
