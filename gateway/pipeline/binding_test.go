package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// bound is a wiring with one binding of the entity e to signals of the types x, text_delta and thinking.
func bound(binding, rest string) string {
	return `{"choreographies":[{"id":"a","on":"x"}],"wires":[` + typed("1", "x", "a", "") + `,` + typed("2", "text_delta", "a", "") + `,` + typed("3", "thinking", "a", "") + `],
		"bindings":[{"id":"b","targetEntityId":"e","sourceChoreographyId":"a",` + binding + `}]` + rest + `}`
}

// assigned is what a signal assigns, without the dispatch.
func assigned(p *Pipeline, at int, typ, payload string) []string {
	var all []string
	for _, c := range p.Take(begin.Add(time.Duration(at)*time.Millisecond), "s", raw(typ, payload)) {
		if _, is := c.(Dispatch); !is {
			all = append(all, short(c))
		}
	}
	return all
}

func TestInstantBindings(t *testing.T) {
	const number = `"property":"opacity","sourceType":"float"`
	for name, x := range map[string]struct {
		binding, rest string
		payload       string
		want          []string
	}{
		"a number by its field":               {number + `,"sourceField":"f"`, "", `{"value":1,"opacity":2,"f":3}`, []string{"e.opacity=3"}},
		"a field with a dot is a field":       {number + `,"sourceField":"f.g"`, "", `{"f":{"g":1},"f.g":3}`, []string{"e.opacity=3"}},
		"a field that is no number":           {number + `,"sourceField":"f"`, "", `{"value":1,"opacity":2,"f":"3"}`, []string{"e.opacity=2"}},
		"a number by the property":            {number, "", `{"first":9,"value":1,"opacity":2}`, []string{"e.opacity=2"}},
		"by the property's last part":         {`"property":"position.x","sourceType":"float"`, "", `{"value":1,"x":2,"position.x":3}`, []string{"e.position.x=2"}},
		"a number by value":                   {number, "", `{"first":9,"value":1}`, []string{"e.opacity=1"}},
		"the first number":                    {number, "", `{"z":"1","y":null,"b":7,"a":8}`, []string{"e.opacity=7"}},
		"no number":                           {number, "", `{"z":"1","o":{"n":1}}`, nil},
		"a field goes before a transition":    {number + `,"sourceField":"f","transition":{"targetValue":9,"durationMs":10}`, "", `{"f":3}`, []string{"e.opacity=3"}},
		"scaled":                              {number + `,"mapping":{"fn":"lerp","inputRange":[0,10],"outputRange":[0,1]}`, "", `{"value":5}`, []string{"e.opacity=0.5"}},
		"an animation":                        {`"property":"animation.state","sourceType":"enum","action":{"animationDuring":"run"}`, "", `{}`, []string{"e.animation.state=run"}},
		"no animation":                        {`"property":"animation.state","sourceType":"enum"`, "", `{}`, nil},
		"visible":                             {`"property":"visible","sourceType":"bool"`, "", `{"value":true}`, []string{"e.visible=false"}},
		"visible, from where it is":           {`"property":"visible","sourceType":"bool"`, `,"entities":[{"id":"e","visible":false}]`, `{}`, []string{"e.visible=true"}},
		"a place":                             {`"property":"teleportTo","sourceType":"point2D","action":{"waypoint":"home"}`, `,"positions":{"home":{"x":1,"y":2.5}}`, `{}`, []string{"e.teleportTo={1 2.5}"}},
		"no place":                            {`"property":"teleportTo","sourceType":"point2D"`, "", `{}`, nil},
		"speech by its field":                 {`"property":"speech","sourceType":"string","sourceField":"f"`, "", `{"content":"c","f":"said"}`, []string{"e.speech=said"}},
		"speech by content":                   {`"property":"speech","sourceType":"string","sourceField":"f"`, "", `{"a":"a","text":"t","content":"c\n\u00e9","f":1}`, []string{"e.speech=c\né"}},
		"speech by text":                      {`"property":"speech","sourceType":"string"`, "", `{"a":"a","message":"m","text":"t"}`, []string{"e.speech=t"}},
		"speech by message":                   {`"property":"speech","sourceType":"string"`, "", `{"a":"a","message":"m"}`, []string{"e.speech=m"}},
		"the first words":                     {`"property":"speech","sourceType":"string"`, "", `{"n":1,"z":"","b":"b","a":"a"}`, []string{"e.speech=b"}},
		"nothing to say":                      {`"property":"speech","sourceType":"string"`, "", `{"n":1,"z":""}`, nil},
		"what only a stage knows":             {`"property":"tint","sourceType":"color"`, "", `{"value":1}`, nil},
		"every entity with the semantic name": {number, `,"entities":[{"id":"1","semanticId":"e"},{"id":"2","semanticId":"e"},{"id":"3"}]`, `{"value":1}`, []string{"1.opacity=1", "2.opacity=1"}},
		"an entity by its id":                 {number, `,"entities":[{"id":"e"}]`, `{"value":1}`, []string{"e.opacity=1"}},
		"an id that has another name":         {number, `,"entities":[{"id":"e","semanticId":"f"}]`, `{"value":1}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := running(t, bound(x.binding, x.rest))
			if got := assigned(p, 0, "x", x.payload); !slices.Equal(got, x.want) {
				t.Errorf("got %q, want %q", got, x.want)
			}
		})
	}
}

func TestEveryNumericProperty(t *testing.T) {
	for property, before := range map[string]float64{"opacity": 0.25, "rotation": 90, "scale": 2, "position.x": 3, "position.y": 4} {
		p := running(t, bound(`"property":"`+property+`","sourceType":"float","transition":{"targetValue":9,"durationMs":10}`, `,"entities":[{"id":"e","x":3,"y":4,"scale":2,"rotation":90,"opacity":0.25}]`))
		want := []string{fmt.Sprintf("e.%s=9 from %v in 10ms linear", property, before)}
		if got := assigned(p, 0, "x", `{}`); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Bindings see the signal as it came, whether or not a filter lets it pass, but only if their choreography wants it.
func TestBindingsGoBesideFilters(t *testing.T) {
	const rest = `"bindings":[{"id":"b","targetEntityId":"e","sourceChoreographyId":"a","property":"opacity","sourceType":"float","sourceField":"n"}]}`
	p := running(t, `{"choreographies":[{"id":"a","on":"x","when":{"n":{"gt":0}}}],"wires":[`+typed("1", "x", "a", `{"type":"map","mappings":[{"from":"m","to":"n"}]},{"type":"sample","every":2}`)+`],`+rest)
	var got []string
	for _, payload := range []string{`{"n":1,"m":5}`, `{"n":2,"m":5}`, `{"n":-1}`} {
		got = append(got, shorts(p.Take(begin, "s", raw("x", payload)))...)
	}
	if want := []string{"e.opacity=1", `a __f:a {"n":5,"m":5}`, "e.opacity=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScales(t *testing.T) {
	for _, x := range []struct {
		fn        string
		in, out   [2]float64
		raw, want float64
	}{
		{"lerp", [2]float64{0, 10}, [2]float64{0, 1}, 5, 0.5}, {"lerp", [2]float64{0, 10}, [2]float64{0, 1}, -5, 0}, {"lerp", [2]float64{0, 10}, [2]float64{0, 1}, 50, 1},
		{"lerp", [2]float64{10, 0}, [2]float64{0, 1}, 10, 0}, {"lerp", [2]float64{0, 127}, [2]float64{0, 360}, 127, 360}, {"lerp", [2]float64{0, 10}, [2]float64{1, -1}, 5, 0},
		{"unknown", [2]float64{0, 10}, [2]float64{0, 1}, 5, 0.5},
		{"clamp", [2]float64{0, 10}, [2]float64{0, 1}, 5, 1}, {"clamp", [2]float64{0, 10}, [2]float64{0, 1}, 0.25, 0.25}, {"clamp", [2]float64{0, 10}, [2]float64{0, 1}, -1, 0},
		{"step", [2]float64{0, 10}, [2]float64{2, 3}, 4.9, 2}, {"step", [2]float64{0, 10}, [2]float64{2, 3}, 5, 3},
		{"smoothstep", [2]float64{0, 1}, [2]float64{0, 10}, 0.25, 1.5625}, {"smoothstep", [2]float64{0, 1}, [2]float64{0, 10}, 0.5, 5}, {"smoothstep", [2]float64{0, 1}, [2]float64{0, 10}, 2, 10},
		{"lerp", [2]float64{5, 5}, [2]float64{2, 3}, 5, 2}, {"clamp", [2]float64{5, 5}, [2]float64{2, 3}, 9, 2}, {"step", [2]float64{5, 5}, [2]float64{2, 3}, 9, 2}, {"smoothstep", [2]float64{5, 5}, [2]float64{2, 3}, 9, 2},
	} {
		if got := (&Scale{x.fn, x.in, x.out}).of(x.raw); got != x.want {
			t.Errorf("%s of %v from %v to %v is %v, want %v", x.fn, x.raw, x.in, x.out, got, x.want)
		}
	}
	if got := (*Scale)(nil).of(7); got != 7 {
		t.Errorf("without a scale 7 is %v", got)
	}
}

func TestEasing(t *testing.T) {
	for easing, want := range map[string][5]float64{ // at 0, 1/4, 1/2, 3/4 and 1
		"linear": {0, 0.25, 0.5, 0.75, 1}, "": {0, 0.25, 0.5, 0.75, 1}, "unknown": {0, 0.25, 0.5, 0.75, 1},
		"easeIn": {0, 0.0625, 0.25, 0.5625, 1}, "easeOut": {0, 0.4375, 0.75, 0.9375, 1}, "easeInOut": {0, 0.125, 0.5, 0.875, 1},
		"arc": {0, 0.7071067811865475, 1, 0.7071067811865476, 0},
	} {
		for i, w := range want {
			if got := ease(easing, float64(i)/4); got-w > 1e-9 || w-got > 1e-9 {
				t.Errorf("%q at %d/4 is %v, want %v", easing, i, got, w)
			}
		}
	}
}

func TestTransitions(t *testing.T) {
	type in struct {
		at     int
		signal bool // otherwise only the time comes
	}
	const e = `,"entities":[{"id":"e","scale":1}]`
	scale := func(rest string) string {
		return `"property":"scale","sourceType":"event","transition":{"targetValue":3,"durationMs":100` + rest + `}`
	}
	for name, x := range map[string]struct {
		binding string
		in      []in
		want    []string
	}{
		"there and done":                               {scale(``), []in{{0, true}, {99, false}, {100, false}, {500, false}}, []string{"0 e.scale=3 from 1 in 100ms linear", "100 e.scale=3"}},
		"a second, from the end":                       {scale(``), []in{{0, true}, {100, false}, {200, true}, {300, false}}, []string{"0 e.scale=3 from 1 in 100ms linear", "100 e.scale=3", "200 e.scale=3 from 3 in 100ms linear", "300 e.scale=3"}},
		"a second, from the way":                       {scale(``), []in{{0, true}, {50, true}, {100, false}, {150, false}}, []string{"0 e.scale=3 from 1 in 100ms linear", "50 e.scale=3 from 2 in 100ms linear", "150 e.scale=3"}},
		"on an arc":                                    {scale(`,"easing":"arc"`), []in{{0, true}, {50, true}}, []string{"0 e.scale=3 from 1 in 100ms arc", "50 e.scale=3 from 3 in 100ms arc"}},
		"there and back":                               {scale(`,"revert":true,"revertDelayMs":40,"easing":"easeIn"`), []in{{0, true}, {100, false}, {139, false}, {140, false}, {240, false}, {900, false}}, []string{"0 e.scale=3 from 1 in 100ms easeIn", "100 e.scale=3", "140 e.scale=1 from 3 in 100ms easeIn", "240 e.scale=1"}},
		"all at once, much later":                      {scale(`,"revert":true`), []in{{0, true}, {900, false}}, []string{"0 e.scale=3 from 1 in 100ms linear", "900 e.scale=3", "900 e.scale=1 from 3 in 100ms linear", "900 e.scale=1"}},
		"a second while it waits":                      {scale(`,"revert":true,"revertDelayMs":50`), []in{{0, true}, {120, true}, {220, false}, {270, false}, {370, false}}, []string{"0 e.scale=3 from 1 in 100ms linear", "120 e.scale=3", "120 e.scale=3 from 3 in 100ms linear", "220 e.scale=3", "270 e.scale=1 from 3 in 100ms linear", "370 e.scale=1"}},
		"back to the start of the run, not of the way": {scale(`,"revert":true`), []in{{0, true}, {50, true}, {150, false}, {250, false}}, []string{"0 e.scale=3 from 1 in 100ms linear", "50 e.scale=3 from 2 in 100ms linear", "150 e.scale=3", "150 e.scale=1 from 3 in 100ms linear", "250 e.scale=1"}},
		"in no time":                                   {`"property":"scale","sourceType":"event","transition":{"targetValue":3,"durationMs":0,"revert":true}`, []in{{0, true}}, []string{"0 e.scale=3 from 1 in 0ms linear", "0 e.scale=3", "0 e.scale=1 from 3 in 0ms linear", "0 e.scale=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := running(t, bound(x.binding, e))
			var got []string
			for _, one := range x.in {
				now := begin.Add(time.Duration(one.at) * time.Millisecond)
				if one.signal {
					for _, s := range assigned(p, one.at, "x", `{}`) {
						got = append(got, fmt.Sprint(one.at, " ", s))
					}
					continue
				}
				for _, c := range p.Advance(now) {
					got = append(got, fmt.Sprint(one.at, " ", short(c)))
				}
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("got  %q\nwant %q", got, x.want)
			}
		})
	}
}

func TestNextIsWhenSomethingIsDue(t *testing.T) {
	p := running(t, bound(`"property":"scale","sourceType":"event","transition":{"targetValue":3,"durationMs":100,"revert":true,"revertDelayMs":30}`, ""))
	if _, ok := p.Next(); ok {
		t.Error("something is due before there was a signal")
	}
	assigned(p, 0, "x", `{}`)
	for _, want := range []int{100, 130, 230} {
		at, ok := p.Next()
		if !ok || !at.Equal(begin.Add(time.Duration(want)*time.Millisecond)) {
			t.Fatalf("due at %v, want after %d ms", at.Sub(begin), want)
		}
		p.Advance(at)
	}
	if _, ok := p.Next(); ok {
		t.Error("something is due when all is done")
	}
}

// Of several entities each change is due at its own time.
func TestChangesOfSeveralEntities(t *testing.T) {
	p := running(t, `{"choreographies":[{"id":"a","on":"x"},{"id":"b","on":"y"}],"bindings":[
		{"id":"1","targetEntityId":"e","property":"scale","sourceChoreographyId":"a","sourceType":"event","transition":{"targetValue":3,"durationMs":100}},
		{"id":"2","targetEntityId":"f","property":"scale","sourceChoreographyId":"b","sourceType":"event","transition":{"targetValue":3,"durationMs":20}},
		{"id":"3","targetEntityId":"f","property":"opacity","sourceChoreographyId":"b","sourceType":"event","transition":{"targetValue":0,"durationMs":20,"revert":true,"revertDelayMs":30}}]}`)
	assigned(p, 0, "x", `{}`)
	assigned(p, 10, "y", `{}`)
	var got []string
	for {
		at, ok := p.Next()
		if !ok {
			break
		}
		for _, c := range p.Advance(at) {
			got = append(got, fmt.Sprint(at.Sub(begin).Milliseconds(), " ", short(c)))
		}
	}
	if want := []string{"30 f.scale=3", "30 f.opacity=0", "60 f.opacity=1 from 0 in 20ms linear", "80 f.opacity=1", "100 e.scale=3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnAssignmentEndsATransition(t *testing.T) {
	for _, x := range []struct{ property, other, want string }{
		{"scale", `"property":"scale","sourceType":"float","sourceField":"n"`, "e.scale=5"},
		{"position.x", `"property":"teleportTo","sourceType":"event","action":{"waypoint":"home"}`, "e.teleportTo={1 2}"},
	} {
		p := running(t, `{"choreographies":[{"id":"a","on":"x"},{"id":"b","on":"y"}],"positions":{"home":{"x":1,"y":2}},"bindings":[
			{"id":"1","targetEntityId":"e","property":"`+x.property+`","sourceChoreographyId":"a","sourceType":"event","transition":{"targetValue":3,"durationMs":100}},
			{"id":"2","targetEntityId":"e","sourceChoreographyId":"b",`+x.other+`}]}`)
		assigned(p, 0, "x", `{}`)
		if got := assigned(p, 50, "y", `{"n":5}`); !slices.Equal(got, []string{x.want}) {
			t.Errorf("got %q, want %q", got, x.want)
		}
		if got := p.Advance(begin.Add(time.Hour)); len(got) > 0 {
			t.Errorf("and then %q", shorts(got))
		}
	}
}

func TestSpeechGoesOnWithinThreeSeconds(t *testing.T) {
	p := running(t, bound(`"property":"speech","sourceType":"string"`, ""))
	for _, x := range []struct {
		at        int
		typ, want string
	}{
		{0, "text_delta", "e.speech=w"}, {2000, "text_delta", "e.speech=w appended"}, {5000, "thinking", "e.speech=w appended"}, {8001, "text_delta", "e.speech=w"},
		{8100, "x", "e.speech=w"}, {8200, "text_delta", "e.speech=w"}, {8300, "text_delta", "e.speech=w appended"},
	} {
		if got := assigned(p, x.at, x.typ, `{"content":"w"}`); !slices.Equal(got, []string{x.want}) {
			t.Errorf("%s after %d ms: %q, want %q", x.typ, x.at, got, x.want)
		}
	}
}
