package pipeline

import (
	"cmp"
	"slices"
	"time"
)

// stage is what is known of the entities while a run lasts, and what changes about them in time.
type stage struct {
	entities map[string]*State
	spoke    map[string]time.Time // when an entity last said a part of something
	snapshot []State              // of the start
	changes  map[key]*change
	soonest  time.Time // no change is due before
	begun    int       // changes so far, for their order
}

type key struct{ entity, property string }

// change is a transition on its way, or one that is over and will be taken back.
type change struct {
	key
	binding string
	order   int
	from    float64
	to      float64
	start   time.Time
	Transition
	home     float64 // what a revert goes back to
	arrived  bool
	deadline time.Time // of the arrival, then of the revert
}

func newStage(entities []Entity) stage {
	s := stage{entities: map[string]*State{}, spoke: map[string]time.Time{}, changes: map[key]*change{}}
	for _, e := range entities {
		s.entities[e.ID] = e.state()
		s.snapshot = append(s.snapshot, *s.entities[e.ID])
	}
	return s
}

func (e Entity) state() *State {
	return &State{
		ID: e.ID, X: e.X, Y: e.Y, Rotation: e.Rotation,
		Scale: orElse(e.Scale, 1), Opacity: orElse(e.Opacity, 1), Visible: orElse(e.Visible, true),
	}
}

func orElse[T any](v *T, other T) T {
	if v == nil {
		return other
	}
	return *v
}

// number is where a state holds a numeric property; nil for any other.
func (s *State) number(property string) *float64 {
	switch property {
	case "opacity":
		return &s.Opacity
	case "rotation":
		return &s.Rotation
	case "scale":
		return &s.Scale
	case "position.x":
		return &s.X
	case "position.y":
		return &s.Y
	}
	return nil
}

// value is how far a change has come.
func (c *change) value(now time.Time) float64 {
	duration := milliseconds(c.DurationMs)
	if c.arrived || now.Sub(c.start) >= duration {
		return c.to
	}
	t := clamp01(float64(now.Sub(c.start)) / float64(duration))
	return c.from + (c.to-c.from)*ease(c.Easing, t)
}

// begin starts a transition from where the property is now, in the place of one that is on its way.
func (s *stage) begin(now time.Time, e *State, b *Binding) Assignment {
	k := key{e.ID, b.Property}
	from := *e.number(b.Property)
	if running := s.changes[k]; running != nil {
		from = running.value(now)
	}
	c := &change{key: k, binding: b.ID, from: from, to: b.Transition.Target, Transition: *b.Transition, home: from}
	for i := range s.snapshot {
		if s.snapshot[i].ID == e.ID {
			c.home = *s.snapshot[i].number(b.Property)
		}
	}
	return s.run(now, c)
}

// run sets a change on its way.
func (s *stage) run(now time.Time, c *change) Assignment {
	s.begun++
	c.order, c.start, c.arrived, c.deadline = s.begun, now, false, now.Add(milliseconds(c.DurationMs))
	if len(s.changes) == 0 || c.deadline.Before(s.soonest) {
		s.soonest = c.deadline
	}
	s.changes[c.key] = c
	easing := cmp.Or(c.Easing, "linear")
	return Assignment{Binding: c.binding, Entity: c.entity, Property: c.property, Value: c.to, Change: &Change{c.from, c.DurationMs, easing}}
}

// set gives a numeric property a value at once, and so ends a transition of it.
func (s *stage) set(e *State, property string, v float64) {
	*e.number(property) = v
	delete(s.changes, key{e.ID, property})
}

// next is when something changes by itself.
func (s *stage) next() (at time.Time, ok bool) { return s.soonest, len(s.changes) > 0 }

// due lists the changes whose time has come, the first one first.
func (s *stage) due(now time.Time) []*change {
	if len(s.changes) == 0 || s.soonest.After(now) {
		return nil
	}
	var due []*change
	first := true
	for _, c := range s.changes {
		if !c.deadline.After(now) {
			due = append(due, c)
		} else if first || c.deadline.Before(s.soonest) {
			s.soonest, first = c.deadline, false
		}
	}
	slices.SortFunc(due, func(a, b *change) int { return cmp.Or(a.deadline.Compare(b.deadline), cmp.Compare(a.order, b.order)) })
	return due
}

// advance ends a change whose time has come, or takes it back.
func (s *stage) advance(c *change) Assignment {
	if !c.arrived {
		*s.entities[c.entity].number(c.property) = c.to
		c.arrived = true
		if c.Revert {
			c.deadline = c.deadline.Add(milliseconds(c.RevertDelayMs))
			s.soonest = earlier(s.soonest, c.deadline)
		} else {
			delete(s.changes, c.key)
		}
		return Assignment{Binding: c.binding, Entity: c.entity, Property: c.property, Value: c.to}
	}
	c.from, c.to, c.Revert = c.to, c.home, false
	return s.run(c.deadline, c)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
