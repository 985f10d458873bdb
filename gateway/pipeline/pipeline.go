// Package pipeline says what signals set off: which choreographies are performed, and what entities of a stage become.
//
// Start at [Parse], which makes a [Wiring] of wiring.json, and at [Pipeline.Take], through which each signal goes:
//
//	source ──► types that reach choreographies ──► filters of each wire ──► choreographies ──► [Dispatch], [Interrupt]
//	                        └────────────────────────────────────────────► bindings ───────► [Assignment]
//
// A Pipeline is synchronous and reads no clock: whoever calls it owns it, and brings the time. [Runner] is the goroutine
// that does so for a gateway. Drawing what comes out is the stage's affair.
//
// The files: wiring.go and parse.go are what is configured, when.go and filter.go decide what passes, steps.go is what is
// performed, binding.go, value.go, scale.go and stage.go what entities become, runner.go who runs it, status.go how it goes.
package pipeline

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"vela/protocol/signal"
)

// Pipeline is a wiring at work. A signal has no effect before [Pipeline.Start]. It belongs to one goroutine, and what
// its methods return is valid until the next call.
type Pipeline struct {
	wiring  *Wiring
	running bool
	count   uint64 // signals that reached something in this run
	wires   []wireState
	reached []reached // by choreography
	stage   stage

	performances uint64        // begun in this run
	performing   []performance // that may still run, the oldest first

	out []Command
}

// wireState is what a run knows of one wire.
type wireState struct {
	chain chain
	seen  uint64 // signals that came to it
}

// reached is how often a run came to a choreography, and how often that was performed.
type reached struct{ seen, performed uint64 }

type performance struct {
	id          uint64
	correlation string
}

// maxPerforming bounds how many performances are remembered, to be interrupted.
const maxPerforming = 1024

// New returns a pipeline that does not run yet.
func New(w *Wiring) *Pipeline { return &Pipeline{wiring: w} }

// Start begins a run. It does nothing while one lasts.
func (p *Pipeline) Start() []Command {
	p.out = p.out[:0]
	if p.running {
		return p.out
	}
	p.running = true
	p.wires = newWires(p.wiring.config.Wires)
	p.reached = make([]reached, len(p.wiring.choreographies))
	p.stage = newStage(p.wiring.entities)
	p.say(Started{})
	return p.out
}

// Stop ends a run. Filters and transitions are forgotten, the count is 0 again, and the entities that were there at the
// start are as they were; those that came later stay as they are.
func (p *Pipeline) Stop() []Command {
	p.out = p.out[:0]
	if !p.running {
		return p.out
	}
	before := slices.DeleteFunc(p.stage.snapshot, func(s State) bool { return p.stage.entities[s.ID] == nil })
	*p = Pipeline{wiring: p.wiring, out: p.out}
	p.say(Stopped{Entities: before})
	return p.out
}

// Load puts another wiring in the place of this one, also in the middle of a run: a wire with the same id and the same
// filters goes on where it is, and so does an entity with the same id.
func (p *Pipeline) Load(w *Wiring) {
	old := p.wiring
	p.wiring = w
	if !p.running {
		return
	}
	wires := newWires(w.config.Wires)
	for i, now := range w.config.Wires {
		for j, before := range old.config.Wires {
			if now.ID == before.ID && sameFilters(now.Filters, before.Filters) {
				wires[i] = p.wires[j]
			}
		}
	}
	p.wires = wires
	reached := make([]reached, len(w.choreographies))
	for i, now := range w.choreographies {
		for j, before := range old.choreographies {
			if now.ID == before.ID {
				reached[i] = p.reached[j]
			}
		}
	}
	p.reached = reached
	entities := map[string]*State{}
	for _, e := range w.entities {
		if entities[e.ID] = p.stage.entities[e.ID]; entities[e.ID] == nil {
			entities[e.ID] = e.state()
		}
	}
	p.stage.entities = entities
	for k := range p.stage.changes {
		if entities[k.entity] == nil {
			delete(p.stage.changes, k)
		}
	}
}

func sameFilters(a, b []FilterSetting) bool {
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && reflect.DeepEqual(one, other)
}

func newWires(wires []Wire) []wireState {
	states := make([]wireState, len(wires))
	for i, w := range wires {
		states[i].chain = newChain(w.Filters)
	}
	return states
}

// Take runs one signal through. source is the id of the source that it came through, empty if it came through none; wires
// name that, or what the signal itself calls its source. now never goes back. The signal's payload is kept, and must not
// change any more.
func (p *Pipeline) Take(now time.Time, source string, r signal.Raw) []Command {
	p.out = p.out[:0]
	if !p.running {
		return p.out
	}
	p.advance(now)
	routes := p.wiring.routes[r.Type]
	if !p.feeds(source, r.Source, r.Type) || len(routes) == 0 {
		return p.out
	}
	s := sample{r.Type, r.Payload}
	for i := range routes {
		p.reach(now, &routes[i], r, s)
	}
	for i := range routes {
		k := &p.wiring.choreographies[routes[i].choreography]
		if bindings := p.wiring.bindings[k.ID]; len(bindings) > 0 && k.When.holds(s) {
			p.bind(now, bindings, s)
		}
	}
	p.count++
	p.advance(now) // transitions that take no time
	return p.out
}

// feeds says whether the signals of a source count for a type. Where wires name the sources of a type, others do not; they
// name one by its id, or by what its signals call it.
func (p *Pipeline) feeds(id, called, typ string) bool {
	named := p.wiring.sources[typ]
	if named == nil {
		return true
	}
	wires := named[id]
	for _, i := range wires {
		p.wires[i].seen++
	}
	if called == id {
		return len(wires) > 0
	}
	others := named[called]
	for _, i := range others {
		p.wires[i].seen++
	}
	return len(wires)+len(others) > 0
}

// reach brings a signal to one choreography: once, or, if it is behind filters, once for every wire that lets it pass.
func (p *Pipeline) reach(now time.Time, to *route, r signal.Raw, s sample) {
	k := &p.wiring.choreographies[to.choreography]
	for _, i := range to.wires {
		wire := &p.wires[i]
		wire.seen++
		passing, passes := wire.chain.apply(now, s)
		if !passes {
			continue
		}
		if k.filtered {
			p.perform(to.choreography, k.synthetic, r, passing)
		}
	}
	if !k.filtered {
		p.perform(to.choreography, r.Type, r, s)
	}
}

// perform begins a performance, if the choreography wants this signal.
func (p *Pipeline) perform(which int, typ string, r signal.Raw, s sample) {
	k, count := &p.wiring.choreographies[which], &p.reached[which]
	count.seen++
	if !k.When.holds(s) {
		return
	}
	count.performed++
	if k.Interrupts {
		p.interrupt(r.CorrelationID)
	}
	p.performances++
	if r.CorrelationID != "" { // no other is ever interrupted
		if len(p.performing) == 2*maxPerforming {
			p.performing = slices.Delete(p.performing, 0, maxPerforming)
		}
		p.performing = append(p.performing, performance{p.performances, r.CorrelationID})
	}
	p.say(Dispatch{
		Performance: p.performances, Choreography: k.ID, Type: typ, SignalID: r.ID, SignalType: r.Type,
		CorrelationID: r.CorrelationID, Payload: s.payload, Steps: k.steps.of(s), To: k.to,
	})
}

// interrupt ends the performances of an episode.
func (p *Pipeline) interrupt(correlation string) {
	var ended []uint64
	p.performing = slices.DeleteFunc(p.performing, func(one performance) bool {
		if one.correlation == correlation {
			ended = append(ended, one.id)
		}
		return one.correlation == correlation
	})
	if len(ended) > 0 {
		p.say(Interrupt{correlation, ended})
	}
}

// Finished says that the stage is done with a performance, which then cannot be interrupted any more.
func (p *Pipeline) Finished(performance uint64) {
	for i, one := range p.performing {
		if one.id == performance {
			p.performing = slices.Delete(p.performing, i, i+1)
			return
		}
	}
}

// Advance does what is due by now without a signal.
func (p *Pipeline) Advance(now time.Time) []Command {
	p.out = p.out[:0]
	p.advance(now)
	return p.out
}

func (p *Pipeline) advance(now time.Time) {
	for due := p.stage.due(now); len(due) > 0; due = p.stage.due(now) {
		for _, c := range due {
			p.say(p.stage.advance(c))
		}
	}
}

// Next is when [Pipeline.Advance] has something to do; false if only a signal can change that.
func (p *Pipeline) Next() (time.Time, bool) { return p.stage.next() }

func (p *Pipeline) say(c Command) { p.out = append(p.out, c) }
