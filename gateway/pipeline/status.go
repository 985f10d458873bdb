package pipeline

// Status is how a run goes. It counts from 0 in each run; while none lasts there is nothing to count.
type Status struct {
	Running        bool                 `json:"running"`
	Count          uint64               `json:"count"`          // signals that reached something
	Dropped        uint64               `json:"dropped"`        // signals that came faster than they were taken; of a [Runner]
	Wires          []WireStatus         `json:"wires"`          // every wire, in the order of the wiring
	Choreographies []ChoreographyStatus `json:"choreographies"` // every choreography, in the order of the wiring
}

// WireStatus is how often signals came to a wire, and how often they passed. Only a wire with filters lets any drop. To a
// wire that leads on from a choreography comes what is performed.
type WireStatus struct {
	ID      string         `json:"id"`
	Seen    uint64         `json:"seen"`
	Passed  uint64         `json:"passed"`
	Filters []FilterStatus `json:"filters,omitempty"` // in the order of the chain
}

// FilterStatus is how often signals came to a filter of a chain, and how often they passed it: what passes one comes to the
// next.
type FilterStatus struct {
	Type   string `json:"type"`
	Seen   uint64 `json:"seen"`
	Passed uint64 `json:"passed"`
}

// ChoreographyStatus is how often signals came to a choreography, and how often it was performed: as often as its own when
// let them. A signal that comes by several wires with filters comes as often as it passes.
type ChoreographyStatus struct {
	ID        string `json:"id"`
	Seen      uint64 `json:"seen"`
	Performed uint64 `json:"performed"`
}

// Status says how the run goes.
func (p *Pipeline) Status() Status {
	s := Status{Running: p.running, Count: p.count, Wires: make([]WireStatus, len(p.wires)), Choreographies: make([]ChoreographyStatus, len(p.reached))}
	performed := make(map[string]uint64, len(p.reached))
	for i, r := range p.reached {
		id := p.wiring.choreographies[i].ID
		s.Choreographies[i] = ChoreographyStatus{id, r.seen, r.performed}
		performed[id] = r.performed
	}
	for i := range p.wires {
		wire := p.wiring.config.Wires[i]
		if wire.FromZone == ZoneChoreography {
			n := performed[wire.FromID]
			s.Wires[i] = WireStatus{ID: wire.ID, Seen: n, Passed: n}
			continue
		}
		s.Wires[i] = p.wires[i].status(wire)
	}
	return s
}

func (w *wireState) status(wire Wire) WireStatus {
	s := WireStatus{ID: wire.ID, Seen: w.seen, Passed: w.seen}
	for i, l := range w.chain {
		s.Filters = append(s.Filters, FilterStatus{wire.Filters[i].Type, s.Passed, l.passed})
		s.Passed = l.passed
	}
	return s
}
