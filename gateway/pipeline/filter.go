package pipeline

import (
	"math"
	"time"

	"vela/protocol/signal"
)

// filter is one link of a wire's chain. It belongs to that wire, and has its own state.
type filter interface {
	// apply says whether a signal passes, and as what.
	apply(now time.Time, s sample) (sample, bool)
}

// chain is the filters of one wire, in order. The first that lets a signal drop ends its way.
type chain []link

// link is a filter with how many signals have passed it.
type link struct {
	filter
	passed uint64
}

func (c chain) apply(now time.Time, s sample) (sample, bool) {
	for i := range c {
		var passes bool
		if s, passes = c[i].apply(now, s); !passes {
			return s, false
		}
		c[i].passed++
	}
	return s, true
}

// newChain makes the filters of a wire that [Config.mistakes] has nothing against.
func newChain(settings []FilterSetting) chain {
	c := make(chain, len(settings))
	for i, s := range settings {
		switch s.Type {
		case "throttle":
			c[i].filter = &throttle{interval: milliseconds(s.IntervalMs)}
		case "sample":
			c[i].filter = &everyNth{every: s.Every}
		case "delta":
			c[i].filter = &delta{path: parsePath(s.Path), threshold: s.Threshold}
		case "when":
			c[i].filter = when{s.Clause}
		case "map":
			m := mapper{}
			for _, one := range s.Mappings {
				m = append(m, mapping{parsePath(one.From), parsePath(one.To)})
			}
			c[i].filter = m
		}
	}
	return c
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// throttle lets one signal pass per interval: the first, and then each that comes no sooner than an interval after the
// one that passed last.
type throttle struct {
	interval time.Duration
	last     time.Time
	passed   bool
}

func (t *throttle) apply(now time.Time, s sample) (sample, bool) {
	if t.passed && now.Sub(t.last) < t.interval {
		return s, false
	}
	t.last, t.passed = now, true
	return s, true
}

// everyNth lets the Nth, the 2Nth, … signal pass.
type everyNth struct{ every, count int }

func (e *everyNth) apply(_ time.Time, s sample) (sample, bool) {
	e.count++
	if e.count < e.every {
		return s, false
	}
	e.count = 0
	return s, true
}

// delta lets a signal pass when a number in it has moved by at least the threshold since the last that passed. The first
// number passes, to measure from; what is no number does not.
type delta struct {
	path      path
	threshold float64
	last      float64
	passed    bool
}

func (d *delta) apply(_ time.Time, s sample) (sample, bool) {
	n, ok := numberOf(d.path.value(s))
	if !ok || d.passed && math.Abs(n-d.last) < d.threshold {
		return s, false
	}
	d.last, d.passed = n, true
	return s, true
}

// when lets the signals pass that its clause means.
type when struct{ clause Clause }

func (w when) apply(_ time.Time, s sample) (sample, bool) { return s, w.clause.holds(s) }

// mapper copies values from one path of the payload to another; from the type, too. It lets every signal pass. What it
// copies is read before anything is written, so that two values can change places. A value that is not there leaves its
// target as it is, and so does one that would make the payload longer than a signal may be.
type mapper []mapping

type mapping struct{ from, to path }

func (m mapper) apply(_ time.Time, s sample) (sample, bool) {
	before := s
	for _, one := range m {
		if v := one.from.value(before); v != nil && len(s.payload)+len(v) <= signal.MaxSize {
			s.payload = one.to.set(s.payload, v)
		}
	}
	return s, true
}
