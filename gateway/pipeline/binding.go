package pipeline

import "time"

// Properties that are no numbers and have a meaning here. Any other is for the stage alone, and gets no assignment.
const (
	propertyAnimation = "animation.state"
	propertyVisible   = "visible"
	propertyTeleport  = "teleportTo"
	propertySpeech    = "speech"
)

// speechGap is after how long a silence a part of a text begins a new bubble.
const speechGap = 3 * time.Second

// bind runs the bindings of a choreography that a signal has reached, for each entity that they are about.
func (p *Pipeline) bind(now time.Time, bindings []int, s sample) {
	for _, i := range bindings {
		b := &p.wiring.config.Bindings[i]
		for _, j := range p.wiring.semantic[b.Entity] {
			if e := p.stage.entities[p.wiring.entities[j].ID]; e != nil {
				if a, ok := p.assign(now, b, e, s); ok {
					p.say(a)
				}
			}
		}
	}
}

// assign says what one binding does to one entity. Of a numeric property a source field decides that it follows the
// signal at once; otherwise a transition goes before that.
func (p *Pipeline) assign(now time.Time, b *Binding, e *State, s sample) (Assignment, bool) {
	a := Assignment{Binding: b.ID, Entity: e.ID, Property: b.Property}
	if e.number(b.Property) != nil {
		if b.SourceField == "" && b.Transition != nil {
			return p.stage.begin(now, e, b), true
		}
		raw, ok := numberFor(s.payload, b.SourceField, b.Property)
		if !ok {
			return a, false
		}
		v := b.Mapping.of(raw)
		p.stage.set(e, b.Property, v)
		a.Value = v
		return a, true
	}
	switch b.Property {
	case propertyAnimation:
		if b.Action == nil || b.Action.AnimationDuring == "" {
			return a, false
		}
		a.Value = b.Action.AnimationDuring
	case propertyVisible:
		e.Visible = !e.Visible
		a.Value = e.Visible
	case propertyTeleport:
		if b.Action == nil || b.Action.Waypoint == "" {
			return a, false
		}
		place := p.wiring.config.Positions[b.Action.Waypoint]
		p.stage.set(e, "position.x", place.X)
		p.stage.set(e, "position.y", place.Y)
		a.Value = place
	case propertySpeech:
		text, ok := textFor(s.payload, b.SourceField)
		if !ok {
			return a, false
		}
		a.Value, a.Append = text, p.goesOn(now, e.ID, s.typ)
	default:
		return a, false
	}
	return a, true
}

// goesOn says whether what an entity says belongs to what stands in its bubble.
func (p *Pipeline) goesOn(now time.Time, entity, typ string) bool {
	if typ != "text_delta" && typ != "thinking" {
		delete(p.stage.spoke, entity)
		return false
	}
	last, spoke := p.stage.spoke[entity]
	p.stage.spoke[entity] = now
	return spoke && now.Sub(last) <= speechGap
}
