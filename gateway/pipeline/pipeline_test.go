package pipeline

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vela/protocol/signal"
)

// short is a command in a few characters.
func short(c Command) string {
	switch c := c.(type) {
	case Dispatch:
		return fmt.Sprintf("%s %s %s", c.Choreography, c.Type, c.Payload)
	case Interrupt:
		return fmt.Sprintf("interrupt %s %v", c.CorrelationID, c.Performances)
	case Assignment:
		s := fmt.Sprintf("%s.%s=%v", c.Entity, c.Property, c.Value)
		if c.Append {
			s += " appended"
		}
		if c.Change != nil {
			s += fmt.Sprintf(" from %v in %vms %s", c.Change.From, c.Change.DurationMs, c.Change.Easing)
		}
		return s
	}
	return c.Command()
}

func shorts(commands []Command) []string {
	var all []string
	for _, c := range commands {
		all = append(all, short(c))
	}
	return all
}

// running is a pipeline in the middle of a run.
func running(t testing.TB, wiring string) *Pipeline {
	t.Helper()
	p := New(parse(t, wiring))
	if got := shorts(p.Start()); !slices.Equal(got, []string{"started"}) {
		t.Fatalf("it starts with %q", got)
	}
	return p
}

// typed is a wire from a type to a choreography.
func typed(id, typ, choreography, filters string) string {
	return fmt.Sprintf(`{"id":%q,"fromZone":"signal-type","fromId":%q,"toZone":"choreographer","toId":%q,"filters":[%s]}`, id, typ, choreography, filters)
}

func TestWhatASignalReaches(t *testing.T) {
	const (
		odd  = `{"type":"when","clause":{"n":{"lt":2}}}`
		even = `{"type":"when","clause":{"n":{"gt":1}}}`
		mark = `{"type":"map","mappings":[{"from":"n","to":"m"}]}`
	)
	type in struct{ source, typ, payload string }
	for name, x := range map[string]struct {
		wiring string
		in     []in
		want   []string
		count  uint64
	}{
		"its own type": {
			`{"choreographies":[{"id":"a","on":"x"},{"id":"b","on":"y"}]}`,
			[]in{{"s", "x", `{}`}, {"s", "z", `{}`}}, []string{"a x {}"}, 1,
		},
		"every choreography of a type, in their order": {
			`{"choreographies":[{"id":"a","on":"x"},{"id":"b","on":"x"}]}`, []in{{"s", "x", `{}`}}, []string{"a x {}", "b x {}"}, 1,
		},
		"a wire takes the place of its own type": {
			`{"choreographies":[{"id":"a","on":"x"}],"wires":[` + typed("1", "y", "a", "") + `]}`,
			[]in{{"s", "x", `{}`}, {"s", "y", `{}`}}, []string{"a y {}"}, 1,
		},
		"several wires merge, and a signal counts once": {
			`{"choreographies":[{"id":"a","on":"x"}],"wires":[` + typed("1", "y", "a", "") + `,` + typed("2", "z", "a", "") + `,` + typed("3", "y", "a", "") + `]}`,
			[]in{{"s", "y", `{}`}, {"s", "z", `{}`}}, []string{"a y {}", "a z {}"}, 2,
		},
		"behind filters it has a type of its own": {
			`{"choreographies":[{"id":"a","on":"x"}],"wires":[` + typed("1", "x", "a", even) + `]}`,
			[]in{{"s", "x", `{"n":1}`}, {"s", "x", `{"n":2}`}}, []string{`a __f:a {"n":2}`}, 2,
		},
		"parallel wires split": {
			`{"choreographies":[{"id":"a","on":"x"},{"id":"b","on":"x"}],"wires":[` + typed("1", "x", "a", odd) + `,` + typed("2", "x", "b", even) + `]}`,
			[]in{{"s", "x", `{"n":1}`}, {"s", "x", `{"n":2}`}}, []string{`a __f:a {"n":1}`, `b __f:b {"n":2}`}, 2,
		},
		"every wire that lets it pass dispatches, with its own payload": {
			`{"choreographies":[{"id":"a","on":"x"}],"wires":[` + typed("1", "x", "a", even) + `,` + typed("2", "x", "a", mark) + `,` + typed("3", "x", "a", odd) + `,` + typed("4", "x", "a", "") + `]}`,
			[]in{{"s", "x", `{"n":2}`}}, []string{`a __f:a {"n":2}`, `a __f:a {"n":2,"m":2}`, `a __f:a {"n":2}`}, 1,
		},
		"one wire with filters makes it filtered for all types": {
			`{"choreographies":[{"id":"a","on":"x"}],"wires":[` + typed("1", "x", "a", even) + `,` + typed("2", "y", "a", "") + `]}`,
			[]in{{"s", "y", `{}`}}, []string{`a __f:a {}`}, 1,
		},
		"each wire has its own state": {
			`{"choreographies":[{"id":"a","on":"x"},{"id":"b","on":"x"}],"wires":[` + typed("1", "x", "a", `{"type":"sample","every":2}`) + `,` + typed("2", "y", "a", `{"type":"sample","every":2}`) + `,` + typed("3", "x", "b", `{"type":"sample","every":2}`) + `]}`,
			[]in{{"s", "x", `{}`}, {"s", "y", `{}`}, {"s", "x", `{}`}, {"s", "y", `{}`}}, []string{"a __f:a {}", "b __f:b {}", "a __f:a {}"}, 4,
		},
		"its own when": {
			`{"choreographies":[{"id":"a","on":"x","when":{"signal.n":{"equals":1}}}]}`,
			[]in{{"s", "x", `{"n":2}`}, {"s", "x", `{"n":1}`}}, []string{`a x {"n":1}`}, 2,
		},
		"its own when sees what the filters left": {
			`{"choreographies":[{"id":"a","on":"x","when":{"m":{"equals":1},"signal.type":{"equals":"x"}}}],"wires":[` + typed("1", "x", "a", mark) + `]}`,
			[]in{{"s", "x", `{"n":1}`}}, []string{`a __f:a {"n":1,"m":1}`}, 1,
		},
		"without a wire from a source every source feeds a type": {
			`{"choreographies":[{"id":"a","on":"x"}]}`, []in{{"s", "x", `{}`}, {"t", "x", `{}`}}, []string{"a x {}", "a x {}"}, 2,
		},
		"with one only wired sources feed it": {
			`{"choreographies":[{"id":"a","on":"x"},{"id":"b","on":"y"}],"wires":[{"id":"1","fromZone":"signal","fromId":"s","toZone":"signal-type","toId":"x"},{"id":"2","fromZone":"signal","fromId":"u","toZone":"signal-type","toId":"x"}]}`,
			[]in{{"s", "x", `{}`}, {"t", "x", `{}`}, {"u", "x", `{}`}, {"t", "y", `{}`}}, []string{"a x {}", "a x {}", "b y {}"}, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := running(t, x.wiring)
			var got []string
			for _, one := range x.in {
				got = append(got, shorts(p.Take(begin, one.source, raw(one.typ, one.payload)))...)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("got  %q\nwant %q", got, x.want)
			}
			if n := p.Status().Count; n != x.count {
				t.Errorf("%d signals were counted, want %d", n, x.count)
			}
		})
	}
}

func TestADispatchSaysWhatItIsAbout(t *testing.T) {
	p := running(t, `{"choreographies":[{"id":"a","on":"x","defaultTargetEntityId":"hero","steps":[
			{"action":"fly","delay":0,"entity":"","params":{"to":"signal.place","label":"signal.none","speed":2}},
			{"action":"parallel","entity":"other","delay":5,"steps":[{"action":"flash","params":{"colours":["signal.type","signal.none","red"]}}]}
		]}],
		"wires":[`+typed("1", "x", "a", `{"type":"map","mappings":[{"from":"p","to":"place"}]}`)+`,
			{"id":"2","fromZone":"choreographer","fromId":"a","toZone":"shader","toId":"glow:level","mapping":{"fn":"scale","args":[1,"two"]}},
			{"id":"3","fromZone":"choreographer","fromId":"a","toZone":"p5","toId":"p5:waves:height"}]}`)
	r := raw("x", `{"p":{"x":1}}`)
	r.CorrelationID = "episode"
	got := p.Take(begin, "s", r)
	text, err := json.Marshal(got)
	want := `[{"performance":1,"choreography":"a","type":"__f:a","signalId":"s","signalType":"x","correlationId":"episode","payload":{"p":{"x":1},"place":{"x":1}},"steps":[` +
		`{"action":"fly","entity":"hero","speed":2,"to":{"x":1}},` +
		`{"action":"parallel","delay":5,"entity":"other","steps":[{"action":"flash","colours":["x",null,"red"],"entity":"hero"}]}],` +
		`"to":[{"zone":"shader","id":"glow:level","mapping":{"fn":"scale","args":[1,"two"]}},{"zone":"p5","id":"p5:waves:height"}]}]`
	if err != nil || string(text) != want {
		t.Errorf("%v\n got %s\nwant %s", err, text, want)
	}
	p = running(t, `{"choreographies":[{"id":"a","on":"x","steps":[{"action":"wave","params":{"times":2}}]}]}`)
	if d := p.Take(begin, "s", raw("x", `{}`))[0].(Dispatch); len(d.Steps) != 1 || string(d.Steps[0]) != `{"action":"wave","times":2}` {
		t.Errorf("steps that refer to nothing are %s", d.Steps)
	}
}

// What steps repeat of a signal is bounded.
func TestStepsDoNotGrowWithoutBound(t *testing.T) {
	p := running(t, `{"choreographies":[{"id":"a","on":"x","steps":[`+strings.TrimSuffix(strings.Repeat(`{"action":"say","params":{"text":"signal.long"}},`, 200), ",")+`]}]}`)
	size := 0
	for _, s := range p.Take(begin, "s", raw("x", `{"long":"`+strings.Repeat("x", 100_000)+`"}`))[0].(Dispatch).Steps {
		size += len(s)
	}
	if size > signal.MaxSize+20_000 {
		t.Errorf("200 steps are %d bytes", size)
	}
}

func TestInterrupts(t *testing.T) {
	const wiring = `{"choreographies":[{"id":"work","on":"x"},{"id":"stop","on":"y","interrupts":true,"when":{"n":{"exists":true}}}]}`
	p := running(t, wiring)
	take := func(typ, correlation, payload string) []string {
		r := raw(typ, payload)
		r.CorrelationID = correlation
		return shorts(p.Take(begin, "s", r))
	}
	take("x", "k", `{}`) // 1
	take("x", "l", `{}`) // 2
	take("x", "k", `{}`) // 3
	take("x", "", `{}`)  // 4
	take("x", "k", `{}`) // 5
	p.Finished(5)
	for _, x := range []struct {
		correlation, payload string
		want                 []string
	}{
		{"k", `{}`, nil}, // its when does not hold
		{"", `{"n":1}`, []string{`stop y {"n":1}`}},                       // 6
		{"k", `{"n":1}`, []string{"interrupt k [1 3]", `stop y {"n":1}`}}, // 7
		{"k", `{"n":1}`, []string{"interrupt k [7]", `stop y {"n":1}`}},   // 8, which interrupts itself the next time
		{"none", `{"n":1}`, []string{`stop y {"n":1}`}},
		{"l", `{"n":1}`, []string{"interrupt l [2]", `stop y {"n":1}`}},
	} {
		if got := take("y", x.correlation, x.payload); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %q", x, got)
		}
	}
	for range 10 * maxPerforming {
		take("x", "k", `{}`)
	}
	if n := len(p.performing); n > 2*maxPerforming {
		t.Errorf("%d performances are remembered", n)
	}
}

func TestStartAndStop(t *testing.T) {
	p := New(parse(t, `{
		"choreographies": [{"id":"a","on":"x"}],
		"wires": [`+typed("1", "x", "a", `{"type":"sample","every":2}`)+`],
		"bindings": [
			{"id":"1","targetEntityId":"hero","property":"opacity","sourceChoreographyId":"a","sourceType":"float"},
			{"id":"2","targetEntityId":"hero","property":"visible","sourceChoreographyId":"a","sourceType":"event"},
			{"id":"3","targetEntityId":"hero","property":"scale","sourceChoreographyId":"a","sourceType":"float","transition":{"targetValue":3,"durationMs":100}}],
		"entities": [{"id":"hero","x":7,"opacity":0.5}]}`))
	if got := p.Take(begin, "s", raw("x", `{"value":1}`)); len(got) > 0 {
		t.Errorf("before the start: %q", shorts(got))
	}
	if got := p.Stop(); len(got) > 0 {
		t.Errorf("a stop before the start: %q", shorts(got))
	}
	p.Start()
	if got := p.Start(); len(got) > 0 {
		t.Errorf("a second start: %q", shorts(got))
	}
	p.Take(begin, "s", raw("x", `{"value":1}`))
	if s := p.Status(); !s.Running || s.Count != 1 || !reflect.DeepEqual(s.Wires, []WireStatus{{"1", 1, 0, []FilterStatus{{"sample", 1, 0}}}}) {
		t.Errorf("%+v", s)
	}
	text, err := json.Marshal(p.Stop())
	if want := `[{"entities":[{"id":"hero","x":7,"y":0,"scale":1,"rotation":0,"opacity":0.5,"visible":true}]}]`; err != nil || string(text) != want {
		t.Errorf("%v\n got %s\nwant %s", err, text, want)
	}
	if _, ok := p.Next(); ok {
		t.Error("a transition outlives the run")
	}
	if s := p.Status(); s.Running || s.Count != 0 {
		t.Errorf("%+v", s)
	}
	p.Start()
	got := shorts(p.Take(begin, "s", raw("x", `{"value":1}`)))
	if want := []string{"hero.opacity=1", "hero.visible=false", "hero.scale=3 from 1 in 100ms linear"}; !slices.Equal(got, want) {
		t.Errorf("the next run begins with %q, want %q: neither the filter's count nor the entity is of the run before", got, want)
	}
}

func TestLoadInTheMiddleOfARun(t *testing.T) {
	const (
		a     = `{"choreographies":[{"id":"a","on":"x"}],`
		bound = `"bindings":[{"id":"1","targetEntityId":"hero","property":"visible","sourceChoreographyId":"a","sourceType":"event"},{"id":"2","targetEntityId":"ghost","property":"scale","sourceChoreographyId":"a","sourceType":"event","transition":{"targetValue":2,"durationMs":50}}],`
		two   = `{"type":"sample","every":2}`
		three = `{"type":"sample","every":3}`
	)
	p := running(t, a+bound+`"entities":[{"id":"hero"}],"wires":[`+typed("1", "x", "a", two)+`,`+typed("2", "x", "a", two)+`]}`)
	p.Take(begin, "s", raw("x", `{}`))
	p.Load(parse(t, a+strings.Replace(bound, `"ghost"`, `"late"`, 1)+`"entities":[{"id":"late"},{"id":"hero","visible":true,"x":9}],"wires":[`+typed("2", "x", "a", three)+`,`+typed("1", "x", "a", two)+`]}`))
	if _, ok := p.Next(); ok {
		t.Error("the transition of an entity that is gone goes on")
	}
	got := shorts(p.Take(begin, "s", raw("x", `{}`)))
	if want := []string{"a __f:a {}", "hero.visible=true", "late.scale=2 from 1 in 50ms linear"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: the wire 1 goes on, the wire 2 begins anew, and so with the entities", got, want)
	}
	if got := p.Stop()[0].(Stopped).Entities; len(got) != 1 || got[0].ID != "hero" || got[0].X != 0 {
		t.Errorf("restored are %+v; want the hero alone, as at the start", got)
	}
	p.Load(parse(t, `{}`))
	if got := p.Take(begin, "s", raw("x", `{}`)); len(got) > 0 {
		t.Errorf("%q", shorts(got))
	}
}

func TestAllCommandsHaveNames(t *testing.T) {
	for want, c := range map[string]Command{"dispatch": Dispatch{}, "interrupt": Interrupt{}, "assignment": Assignment{}, "started": Started{}, "stopped": Stopped{}} {
		if c.Command() != want {
			t.Errorf("%T is %q", c, c.Command())
		}
	}
}

// chained is a wiring with a chain of five filters, which let a signal pass that has n, and mark it.
var chained = `{"choreographies":[{"id":"a","on":"tool_result"}],"wires":[` + typed("1", "tool_result", "a",
	`{"type":"throttle","intervalMs":0},{"type":"sample","every":1},{"type":"delta","path":"output.n","threshold":0},{"type":"when","clause":{"toolName":{"matches":"^read_"}}},{"type":"map","mappings":[{"from":"output.n","to":"value"}]}`) + `]}`

var sent = []byte(`{"id":"3f0c0a52-5d8e-4d3f-9d1f-5f0a3e1c2b4a","type":"tool_result","timestamp":1738900000000,"source":"adapter:openclaw","correlationId":"task-42","payload":{"toolName":"read_file","agentId":"solver","callId":"call_1","success":true,"output":{"n":5,"content":"The quick brown fox jumps over the lazy dog, again and again, until the file is at its end."}}}`)

// BenchmarkChain is a signal from its JSON to the JSON of what it sets off.
func BenchmarkChain(b *testing.B) {
	p := New(parse(b, chained))
	p.Start()
	in := signal.Intake{Source: "s", NewID: func() string { return "n" }}
	b.ReportAllocs()
	for b.Loop() {
		r, err := in.Accept(sent, 5)
		if err != nil {
			b.Fatal(err)
		}
		commands := p.Take(begin.Add(time.Second), "s", r)
		if len(commands) != 1 {
			b.Fatal(commands)
		}
		if _, err := json.Marshal(commands[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBare is decoding and encoding the same JSON.
func BenchmarkBare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var e signal.Envelope
		if err := json.Unmarshal(sent, &e); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBareMap is the same without our types.
func BenchmarkBareMap(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var v map[string]any
		if err := json.Unmarshal(sent, &v); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}
