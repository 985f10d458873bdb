package feed

import (
	"fmt"
	"slices"
	"strings"

	"vela/protocol"
)

// Bounds of what a subscriber asks for.
const (
	MaxFilters = 16  // at once
	MaxNames   = 32  // in each list of a filter
	maxType    = 128 // bytes
	maxSource  = 256 // bytes
)

// Filter is what a subscriber wants: signals of one of the types, from one of the sources. A name with a star at its end
// stands for all that begin so; an empty list takes all. A source is known by the id of the source that a signal came
// through, or by what the signal itself calls its source.
type Filter struct {
	Types, Sources []string
}

// refusal is why a filter is not taken, in words for who asked for it.
type refusal string

func (r refusal) Error() string       { return string(r) }
func (r refusal) Code() protocol.Code { return protocol.CodeInvalidMessage }

// filter is one that was taken: its lists are sorted, and have no name twice.
type filter struct{ types, sources []string }

func (f Filter) read() (filter, error) {
	for _, list := range []struct {
		of    string
		names []string
		most  int
	}{{"types", f.Types, maxType}, {"sources", f.Sources, maxSource}} {
		if len(list.names) > MaxNames {
			return filter{}, refusal(fmt.Sprintf("%s names more than %d. Ask for fewer, or end one with a star, which stands for anything.", list.of, MaxNames))
		}
		for _, name := range list.names {
			if name == "" || len(name) > list.most {
				return filter{}, refusal(fmt.Sprintf("Each of %s has from 1 to %d bytes.", list.of, list.most))
			}
		}
	}
	return filter{set(f.Types), set(f.Sources)}, nil
}

// Check says whether the filter can be had, as [Subscription.Add] does.
func (f Filter) Check() error {
	_, err := f.read()
	return err
}

// set is the names in order, each once. The names themselves stay as they are.
func set(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

func (f filter) equal(o filter) bool {
	return slices.Equal(f.types, o.types) && slices.Equal(f.sources, o.sources)
}

// Add wants more: what fits any of the filters comes, once. A filter that is there already changes nothing. The error, which
// knows its code, is for who asked: nothing changed.
func (s *Subscription) Add(f Filter) error {
	more, err := f.read()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case slices.ContainsFunc(s.filters, more.equal):
		return nil
	case len(s.filters) == MaxFilters:
		return refusal(fmt.Sprintf("A connection has up to %d filters. Take one back with signal.unsubscribe first.", MaxFilters))
	}
	s.filters = append(s.filters, more)
	return nil
}

// Remove takes back the filter with the same names, in any order; an empty filter takes back all of them. One that is not
// there changes nothing. What waits already stays.
func (s *Subscription) Remove(f Filter) error {
	gone, err := f.read()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(f.Types) == 0 && len(f.Sources) == 0 {
		s.filters = nil
		return nil
	}
	s.filters = slices.DeleteFunc(s.filters, gone.equal)
	return nil
}

func wanted(filters []filter, g Signal) bool {
	for _, f := range filters {
		if matches(f.types, g.Type) && (matches(f.sources, g.Source) || g.Through != "" && matches(f.sources, g.Through)) {
			return true
		}
	}
	return false
}

// matches compares a name with patterns. No pattern takes all.
func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		begin, open := strings.CutSuffix(p, "*")
		return p == name || open && strings.HasPrefix(name, begin)
	})
}
