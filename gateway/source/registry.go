package source

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what people may add.
const (
	maxRemote = 64
	maxURL    = 2048 // bytes
	maxTitle  = 128  // characters of a name
	maxKey    = 4096 // bytes
)

var (
	// ErrUnknown comes from an id of no source.
	ErrUnknown = errors.New("source: there is no such source")
	// ErrLocal comes from removing a source that was found on this machine.
	ErrLocal = errors.New("source: a local source cannot be removed")
	// ErrTooMany comes from adding more than 64 sources.
	ErrTooMany = errors.New("source: there are 64 remote sources already: remove one first")
)

// Found is a service on this machine, as discovery has it.
type Found struct {
	ID        string
	Label     string
	Protocol  Protocol
	URL       string
	Available bool
	NeedsKey  bool
	Models    []string
}

// Registry knows all sources: the local ones first, in the order of their discovery, then the remote ones as they were
// added. It belongs to one goroutine.
type Registry struct {
	local, remote []*entry
	added         int // remote ones so far: they make the ids and choose the colours
}

type entry struct {
	Source
	key  string
	rate rate
}

// Update takes the results of a discovery. New services are added; known ones get their models, and are there or not;
// those that were not found are not there. A source that is connected or connecting stays just as it is.
func (r *Registry) Update(found []Found) {
	for _, f := range found {
		e := r.find(f.ID)
		if e == nil {
			e = &entry{Source: Source{ID: f.ID, Local: true, Colour: localColour(f.ID), State: Unavailable}}
			r.local = append(r.local, e)
		}
		if e.busy() || !e.Local {
			continue
		}
		e.Name, e.Protocol, e.URL, e.NeedsKey = f.Label, f.Protocol, f.URL, f.NeedsKey
		e.State, e.Error = Unavailable, ""
		if f.Available {
			e.State, e.Models = Disconnected, slices.Clone(f.Models)
			e.choose()
		}
	}
	for _, e := range r.local {
		if !e.busy() && !slices.ContainsFunc(found, func(f Found) bool { return f.ID == e.ID }) {
			e.State, e.Error = Unavailable, ""
		}
	}
}

func (e *entry) busy() bool { return e.State == Connected || e.State == Connecting }

// choose keeps the chosen model as long as there is one of that name.
func (e *entry) choose() {
	if !slices.Contains(e.Models, e.Model) {
		e.Model = ""
		if len(e.Models) > 0 {
			e.Model = e.Models[0]
		}
	}
}

// Add adds a remote source. Its error says what is wrong with the address or the name.
func (r *Registry) Add(name, address string) (Source, error) {
	address = strings.TrimSpace(address)
	if err := CheckURL(address); err != nil {
		return Source{}, err
	}
	if len(r.remote) >= maxRemote {
		return Source{}, ErrTooMany
	}
	if name = strings.TrimSpace(name); name == "" {
		u, _ := url.Parse(address) // CheckURL has
		name = u.Host
	}
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxTitle {
		return Source{}, fmt.Errorf("source: a name has at most %d characters", maxTitle)
	}
	e := &entry{Source: Source{
		ID: fmt.Sprintf("remote:%d", r.added+1), Name: name, Colour: palette[r.added%len(palette)],
		Protocol: Detect(address), URL: address, State: Disconnected,
	}}
	e.NeedsKey = e.Protocol == Anthropic || e.Protocol == Gateway
	r.added++
	r.remote = append(r.remote, e)
	return e.Source, nil
}

// Remove forgets a remote source, with its key.
func (r *Registry) Remove(id string) error {
	e := r.find(id)
	switch {
	case e == nil:
		return ErrUnknown
	case e.Local:
		return ErrLocal
	}
	r.remote = slices.DeleteFunc(r.remote, func(other *entry) bool { return other == e })
	return nil
}

// Set says how a source is now, and why, in words for whoever looks at it.
func (r *Registry) Set(id string, state State, why string) error {
	e := r.find(id)
	if e == nil {
		return ErrUnknown
	}
	e.State, e.Error = state, why
	return nil
}

// Upgrade says what a probe has found out about a source: another protocol, and its models.
func (r *Registry) Upgrade(id string, p Protocol, models []string) error {
	e := r.find(id)
	if e == nil {
		return ErrUnknown
	}
	e.Protocol, e.Models = p, slices.Clone(models)
	e.choose()
	return nil
}

// Choose chooses one of a source's models.
func (r *Registry) Choose(id, model string) error {
	e := r.find(id)
	switch {
	case e == nil:
		return ErrUnknown
	case !slices.Contains(e.Models, model):
		return fmt.Errorf("source: it has no model %.64q", model)
	}
	e.Model = model
	return nil
}

// SetKey keeps a source's key, or forgets it with an empty one. found says that it was found on this machine, and not
// given by a person: then it does not take the place of one.
func (r *Registry) SetKey(id, key string, found bool) error {
	e := r.find(id)
	switch {
	case e == nil:
		return ErrUnknown
	case len(key) > maxKey || strings.ContainsAny(key, "\r\n\x00"):
		return fmt.Errorf("source: a key is one line of at most %d bytes", maxKey)
	case found && e.key != "":
		return nil
	}
	e.key, e.HasKey, e.TokenAutoFilled = key, key != "", found && key != ""
	return nil
}

// Key is a source's key, for whoever connects to it. It is never shown.
func (r *Registry) Key(id string) string {
	if e := r.find(id); e != nil {
		return e.key
	}
	return ""
}

// Count notes that a source has sent something.
func (r *Registry) Count(id string, now time.Time) {
	if e := r.find(id); e != nil {
		e.rate.add(now)
	}
}

// List is all sources as they are now.
func (r *Registry) List(now time.Time) []Source {
	all := make([]Source, 0, len(r.local)+len(r.remote))
	for _, list := range [][]*entry{r.local, r.remote} {
		for _, e := range list {
			s := e.Source
			s.EventsPerSecond = e.rate.perSecond(now)
			s.Models = append([]string{}, e.Models...)
			all = append(all, s)
		}
	}
	return all
}

func (r *Registry) find(id string) *entry {
	for _, list := range [][]*entry{r.local, r.remote} {
		for _, e := range list {
			if e.ID == id {
				return e
			}
		}
	}
	return nil
}

// AutoConnect says whether a source is one of the two that connect by themselves, and may: Claude Code when it is there,
// and OpenClaw when it is there and its token is known.
func AutoConnect(s Source) bool {
	switch s.ID {
	case "local:claude-code":
		return s.State == Disconnected
	case "local:openclaw":
		return s.State == Disconnected && s.HasKey
	}
	return false
}
