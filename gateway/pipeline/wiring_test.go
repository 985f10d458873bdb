package pipeline

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vela/protocol/signal"
)

// parse reads a wiring that a test has written well.
func parse(t testing.TB, text string) *Wiring {
	t.Helper()
	w, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

// raw is a signal.
func raw(typ, payload string) signal.Raw {
	return signal.Raw{ID: "s", Type: typ, Source: "test", Payload: json.RawMessage(payload)}
}

func TestMistakesAreNamedWithTheirPlace(t *testing.T) {
	const c = `"choreographies":[{"id":"c","on":"x"}]`
	wire := func(rest string) string {
		return `{` + c + `,"wires":[{"id":"w","fromZone":"signal-type","fromId":"x","toZone":"choreographer","toId":"c"` + rest + `}]}`
	}
	filter := func(f string) string { return wire(`,"filters":[` + f + `]`) }
	binding := func(rest string) string {
		return `{` + c + `,"bindings":[{"id":"b","targetEntityId":"e","property":"opacity","sourceChoreographyId":"c","sourceType":"float"` + rest + `}]}`
	}
	for text, want := range map[string][]string{
		`{`:                      {"/: unexpected EOF"},
		"{\n\n  \"wires\": x\n}": {"/: line 3, column 12: invalid character 'x'"},
		`[]`:                     {"/: got array, want object"},
		`{"wire":[]}`:            {"/: additional properties 'wire' not allowed"},
		`{"wires":[{}]}`:         {"/wires/0: missing properties 'id', 'fromZone', 'fromId', 'toZone', 'toId'"},
		wire(`,"colour":1`):      {"/wires/0: additional properties 'colour' not allowed"},
		filter(`{}`):             {"/wires/0/filters/0: missing property 'type'"},
		filter(`{"type":"drop"}`): {
			"/wires/0/filters/0/type: value must be one of 'throttle', 'sample', 'delta', 'when', 'map'"},
		filter(`{"type":"throttle"}`):                          {"/wires/0/filters/0: missing property 'intervalMs'"},
		filter(`{"type":"throttle","intervalMs":-1}`):          {"/wires/0/filters/0/intervalMs: minimum: got -1, want 0"},
		filter(`{"type":"throttle","intervalMs":1,"every":2}`): {"/wires/0/filters/0: additional properties 'every' not allowed"},
		filter(`{"type":"sample","every":0}`):                  {"/wires/0/filters/0/every: minimum: got 0, want 1"},
		filter(`{"type":"sample","every":1.5}`):                {"/wires/0/filters/0/every: got number, want integer"},
		filter(`{"type":"delta","path":"a"}`):                  {"/wires/0/filters/0: missing property 'threshold'"},
		filter(`{"type":"delta","path":"a..b","threshold":1}`): {"/wires/0/filters/0/path: 'a..b' does not match pattern"},
		filter(`{"type":"map","mappings":[{"from":"a"}]}`):     {"/wires/0/filters/0/mappings/0: missing property 'to'"},
		filter(`{"type":"when","clause":7}`):                   {"/wires/0/filters/0/clause: got number, want array or object"},
		filter(`{"type":"when","clause":{"a":{"is":1}}}`):      {"/wires/0/filters/0/clause/a: additional properties 'is' not allowed"},
		filter(`{"type":"when","clause":{"a":{"gt":"1"}}}`):    {"/wires/0/filters/0/clause/a/gt: got string, want number"},
		filter(`{"type":"when","clause":{"a":{"matches":"(?=x)"}}}`): {
			"/wires/0/filters/0/clause: a: matches: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		filter(`{"type":"when","clause":[{"a":{"not":{"matches":"["}}}]}`):                                 {"/wires/0/filters/0/clause: a: not: matches: error parsing regexp: missing closing ]: `[`"},
		`{"choreographies":[{"id":"c","on":"x","when":{"a":{"matches":"["}}}]}`:                            {"/choreographies/0/when: a: matches: error parsing"},
		`{"choreographies":[{"id":"c","on":"x"},{"id":"c","on":"y"}]}`:                                     {"/choreographies/1/id: there is another choreography \"c\""},
		`{"choreographies":[{"id":"c","on":"x","steps":[{"x":1}]}]}`:                                       {"/choreographies/0/steps/0: missing property 'action'"},
		`{"wires":[{"id":"w","fromZone":"signal-type","fromId":"x","toZone":"choreographer","toId":"c"}]}`: {"/wires/0/toId: there is no choreography \"c\""},
		`{"wires":[{"id":"w","fromZone":"choreographer","fromId":"c","toZone":"theme","toId":"t"}]}`:       {"/wires/0/fromId: there is no choreography \"c\""},
		`{` + c + `,"wires":[{"id":"w","fromZone":"signal","fromId":"x","toZone":"choreographer","toId":"c"}]}`: {
			"/wires/0/toZone: no wire leads from signal to choreographer"},
		`{"wires":[{"id":"w","fromZone":"signal","fromId":"x","toZone":"signal-type","toId":"t","filters":[{"type":"sample","every":2}]},
		           {"id":"w","fromZone":"signal","fromId":"y","toZone":"signal-type","toId":"t"}]}`: {
			"/wires/0/filters: only a wire to a choreography has filters", "/wires/1/id: there is another wire \"w\""},
		binding(`,"mapping":{"fn":"lerp","inputRange":[0],"outputRange":[0,1]}`):                                     {"/bindings/0/mapping/inputRange: minItems: got 1, want 2"},
		binding(`,"transition":{"targetValue":1}`):                                                                   {"/bindings/0/transition: missing property 'durationMs'"},
		binding(`,"transition":{"targetValue":1e13,"durationMs":1}`):                                                 {"/bindings/0/transition/targetValue: maximum: got 1×10¹³"},
		binding(`,"action":{"duration":"long"}`):                                                                     {"/bindings/0/action/duration: got string, want number", "/bindings/0/action/duration: value must be 'auto'"},
		strings.Replace(binding(``), `"sourceChoreographyId":"c"`, `"sourceChoreographyId":"d"`, 1):                  {"/bindings/0/sourceChoreographyId: there is no choreography \"d\""},
		strings.Replace(binding(`,"action":{"waypoint":"p"}`), `"property":"opacity"`, `"property":"teleportTo"`, 1): {"/bindings/0/action/waypoint: there is no position \"p\""},
		`{"entities":[{"id":"e"},{"id":"e"}]}`:                                                                       {"/entities/1/id: there is another entity \"e\""},
		`{"positions":{"a/b":{"x":1}}}`:                                                                              {"/positions/a~1b: missing property 'y'"},
	} {
		_, err := Parse([]byte(text))
		found, ok := err.(Mistakes)
		if !ok || len(found) != len(want) {
			t.Errorf("%s: %v, want %q", text, err, want)
			continue
		}
		for _, w := range want {
			if !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, w) }) {
				t.Errorf("%s:\n got %q\nwant %q", text, found, w)
			}
		}
	}
	if _, err := Parse([]byte(`{"wires":[]` + strings.Repeat(" ", MaxSize) + `}`)); err == nil {
		t.Error("a wiring of more than 1 MiB was taken")
	}
}

// The schema and the Go types name the same fields.
func TestTheWiringsSchemaAndTheGoTypesAgree(t *testing.T) {
	type definition struct {
		Properties map[string]json.RawMessage
	}
	var doc struct {
		definition
		Defs map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	inner := func(of, field string) definition {
		var d definition
		if err := json.Unmarshal(doc.Defs[of].Properties[field], &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, x := range map[string]struct {
		schema definition
		of     reflect.Type
	}{
		"wiring": {doc.definition, reflect.TypeFor[Config]()}, "wire": {doc.Defs["wire"], reflect.TypeFor[Wire]()},
		"choreography": {doc.Defs["choreography"], reflect.TypeFor[Choreography]()}, "binding": {doc.Defs["binding"], reflect.TypeFor[Binding]()},
		"entity": {doc.Defs["entity"], reflect.TypeFor[Entity]()}, "mapping of a wire": {inner("wire", "mapping"), reflect.TypeFor[WireMapping]()},
		"mapping": {inner("binding", "mapping"), reflect.TypeFor[Scale]()}, "action": {inner("binding", "action"), reflect.TypeFor[Action]()},
		"transition": {inner("binding", "transition"), reflect.TypeFor[Transition]()},
	} {
		var fields, properties []string
		for f := range x.of.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, tag)
		}
		for p := range x.schema.Properties {
			properties = append(properties, p)
		}
		slices.Sort(fields)
		slices.Sort(properties)
		if !slices.Equal(fields, properties) {
			t.Errorf("%s: %v in Go, %v in the schema", name, fields, properties)
		}
	}
}

// What is read and written again means the same.
func TestAConfigSurvivesItsJSON(t *testing.T) {
	const text = `{"wires":[{"id":"w","fromZone":"signal-type","fromId":"x","toZone":"choreographer","toId":"c","filters":[{"intervalMs":0,"type":"throttle"},{"every":2,"type":"sample"},{"path":"a","threshold":0,"type":"delta"},{"clause":{"a":{"equals":null}},"type":"when"},{"mappings":[{"from":"a","to":"b"}],"type":"map"}]},{"id":"v","fromZone":"choreographer","fromId":"c","toZone":"theme","toId":"t","mapping":{"fn":"f","args":[1]}}],"choreographies":[{"id":"c","on":"x","when":[{"a":{"gt":1}}],"interrupts":true,"defaultTargetEntityId":"e","steps":[{"action":"a"}]},{"id":"d","on":"x"}],"bindings":[{"id":"b","targetEntityId":"e","property":"scale","sourceChoreographyId":"c","sourceType":"float","sourceField":"f","mapping":{"fn":"lerp","inputRange":[0,1],"outputRange":[1,2]},"action":{"duration":"auto"},"transition":{"targetValue":1,"durationMs":2,"easing":"arc","revert":true,"revertDelayMs":3}}],"entities":[{"id":"e","semanticId":"s","x":1,"y":2,"scale":0,"rotation":3,"opacity":0,"visible":false}],"positions":{"p":{"x":1,"y":2}}}`
	got, err := json.Marshal(parse(t, text).Config())
	if err != nil || string(got) != text {
		t.Errorf("%v\n got %s\nwant %s", err, got, text)
	}
	parse(t, string(got))
}

func TestEffectiveTypes(t *testing.T) {
	w := parse(t, `{
		"choreographies": [{"id":"a","on":"x"},{"id":"b","on":"x"}],
		"wires": [
			{"id":"1","fromZone":"signal-type","fromId":"y","toZone":"choreographer","toId":"b"},
			{"id":"2","fromZone":"signal-type","fromId":"z","toZone":"choreographer","toId":"b"},
			{"id":"3","fromZone":"signal-type","fromId":"y","toZone":"choreographer","toId":"b"}
		]}`)
	for k, want := range map[string][]string{"a": {"x"}, "b": {"y", "z"}, "none": nil} {
		if got := w.Config().Types(k); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", k, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"choreographies":[{"id":"c","on":"x","when":[{"a.b":{"not":{"equals":null}}}],"steps":[{"action":"a","params":{"t":"signal.a"}}]}],"wires":[{"id":"w","fromZone":"signal-type","fromId":"x","toZone":"choreographer","toId":"c","filters":[{"type":"delta","path":"a","threshold":1},{"type":"map","mappings":[{"from":"a","to":"b.c"}]}]}],"bindings":[{"id":"b","targetEntityId":"e","property":"scale","sourceChoreographyId":"c","sourceType":"float","transition":{"targetValue":2,"durationMs":0,"revert":true}}]}`), []byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, text, payload []byte) {
		w, err := Parse(text)
		if err != nil {
			return
		}
		in := signal.Intake{Source: "s", NewID: func() string { return "n" }}
		for _, k := range w.Config().Choreographies {
			r, err := in.Accept([]byte(`{"type":`+string(quoted(k.On))+`,"payload":`+string(payload)+`}`), 1)
			if err != nil {
				continue
			}
			p := New(w)
			p.Start()
			for _, c := range p.Take(begin, "s", r) {
				if _, err := json.Marshal(c); err != nil {
					t.Fatalf("%+v: %v", c, err)
				}
			}
		}
	})
}
