package pipeline

import "slices"

// Wiring is a [Config] made ready. It does not change, so many pipelines may share one.
type Wiring struct {
	config         Config
	choreographies []choreography
	routes         map[string][]route          // by the type of a signal
	sources        map[string]map[string][]int // of the types that not every source feeds, with the wires of each
	bindings       map[string][]int            // of a choreography, in the order of the config
	entities       []Entity                    // with those that only bindings name
	semantic       map[string][]int            // entities by what bindings call them
}

// route leads from a type to one choreography.
type route struct {
	choreography int
	wires        []int // of this type; none where the choreography is reached by its own On
}

// choreography is one that is ready to be performed.
type choreography struct {
	Choreography
	filtered  bool   // an input wire has filters
	synthetic string // the type it is registered under, if it is filtered
	steps     steps
	to        []Target
}

// Compile checks a configuration as far as the schema does not, and makes it ready. Its error is of type [Mistakes].
func Compile(c Config) (*Wiring, error) {
	c.Choreographies = slices.Clone(c.Choreographies)
	c.Wires = slices.Clone(c.Wires)
	for i := range c.Wires {
		c.Wires[i].Filters = slices.Clone(c.Wires[i].Filters)
	}
	if found := c.mistakes(); len(found) > 0 {
		return nil, found
	}
	w := &Wiring{
		config: c, routes: map[string][]route{}, sources: map[string]map[string][]int{},
		bindings: map[string][]int{}, semantic: map[string][]int{},
	}
	for i, k := range c.Choreographies {
		if err := w.choreograph(i, k); err != nil {
			return nil, Mistakes{at("choreographies", i, "steps") + ": " + err.Error()}
		}
	}
	for i, wire := range c.Wires {
		if wire.FromZone == ZoneSignal {
			if w.sources[wire.ToID] == nil {
				w.sources[wire.ToID] = map[string][]int{}
			}
			w.sources[wire.ToID][wire.FromID] = append(w.sources[wire.ToID][wire.FromID], i)
		}
	}
	w.place()
	return w, nil
}

// Config is what the wiring was made of.
func (w *Wiring) Config() Config { return w.config }

// choreograph adds a choreography with the wires that lead to it and on from it.
func (w *Wiring) choreograph(i int, k Choreography) error {
	one := choreography{Choreography: k, synthetic: "__f:" + k.ID}
	var err error
	if one.steps, err = newSteps(k); err != nil {
		return err
	}
	byType := map[string][]int{}
	for j, wire := range w.config.Wires {
		switch {
		case wire.ToZone == ZoneChoreography && wire.ToID == k.ID:
			byType[wire.FromID] = append(byType[wire.FromID], j)
			one.filtered = one.filtered || len(wire.Filters) > 0
		case wire.FromZone == ZoneChoreography && wire.FromID == k.ID:
			one.to = append(one.to, Target{wire.ToZone, wire.ToID, wire.Mapping})
		}
	}
	for _, typ := range w.config.Types(k.ID) {
		w.routes[typ] = append(w.routes[typ], route{i, byType[typ]})
	}
	w.choreographies = append(w.choreographies, one)
	return nil
}

// place finds the entities that bindings are about.
func (w *Wiring) place() {
	w.entities = slices.Clone(w.config.Entities)
	for i, e := range w.entities {
		name := e.Semantic
		if name == "" {
			name = e.ID
		}
		w.semantic[name] = append(w.semantic[name], i)
	}
	for i, b := range w.config.Bindings {
		w.bindings[b.Choreography] = append(w.bindings[b.Choreography], i)
		taken := slices.ContainsFunc(w.entities, func(e Entity) bool { return e.ID == b.Entity })
		if len(w.semantic[b.Entity]) == 0 && !taken {
			w.semantic[b.Entity] = []int{len(w.entities)}
			w.entities = append(w.entities, Entity{ID: b.Entity})
		}
	}
}
