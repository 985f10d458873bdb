package source

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
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
	maxModel  = 256  // bytes of a model's name

	maxAdded = 1 << 30
)

// Mistake is an error of whoever asked for something: what is wrong, in words that may be shown to anybody.
type Mistake string

func (m Mistake) Error() string { return string(m) }

// What is asked for in vain.
const (
	ErrUnknown Mistake = "There is no such source."
	ErrLocal   Mistake = "A source that was found on this machine cannot be removed."
	ErrTooMany Mistake = "There are 64 added sources already. Remove one first."
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
	key      string
	declined bool // a person took the key away: none is filled in
	wanted   bool // a person connected it, and neither a person nor its other end has ended that
	keyGone  bool // it had a key in another process, and has had none since
	meter    meter
}

// Update takes the results of a discovery. New services are added; known ones get their models, and are there or not;
// those that were not found are not there. A source that is connected or connecting stays just as it is, and one that
// failed keeps saying why, for as long as it is there.
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
		switch {
		case !f.Available:
			e.State, e.Error = Unavailable, ""
		case e.State != Failed:
			e.State, e.Error = Disconnected, ""
		}
		if f.Available {
			e.Models = slices.Clone(f.Models)
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

// choose keeps the chosen model as long as there is one of that name, or none is listed.
func (e *entry) choose() {
	if len(e.Models) > 0 && !slices.Contains(e.Models, e.Model) {
		e.Model = e.Models[0]
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
		return Source{}, Mistake(fmt.Sprintf("A name has at most %d characters.", maxTitle))
	}
	r.added++
	return r.add(r.added, name, address), nil
}

func (r *Registry) add(number int, name, address string) Source {
	e := &entry{Source: Source{
		ID: fmt.Sprint(remotePrefix, number), Name: name, Colour: palette[(number-1)%len(palette)],
		Protocol: Detect(address), URL: address, State: Disconnected, Models: []string{},
	}}
	e.NeedsKey = e.Protocol == Anthropic || e.Protocol == Gateway
	r.remote = append(r.remote, e)
	return e.Source
}

const remotePrefix = "remote:"

// Kept is what outlives the process: the added sources, and whether they are to be connected, without their keys.
type Kept struct {
	Added   int          `json:"added"` // so far, with those that were removed: no id is given twice
	Sources []KeptSource `json:"sources"`
}

// KeptSource is one of [Kept].
type KeptSource struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	URL  string `json:"url"`

	Connect bool   `json:"connect,omitempty"` // it is connected, or is to be again
	Keyed   bool   `json:"keyed,omitempty"`   // it has a key, which is not kept
	Model   string `json:"model,omitempty"`   // the chosen one
}

// errKeyGone says why a source is not connected again.
const errKeyGone = "Its key was not kept over a restart. Set it, and it connects again."

// Keep is what there is to keep.
func (r *Registry) Keep() Kept {
	k := Kept{Added: r.added, Sources: []KeptSource{}}
	for _, e := range r.remote {
		k.Sources = append(k.Sources, KeptSource{e.ID, e.Name, e.URL, e.wanted, e.key != "" || e.keyGone, e.Model})
	}
	return k
}

// Restore takes up what another process has kept. Of that, the registry has to have nothing yet. A source that is to be
// connected, but had a key, says that this is missing. The error says which source it did not take; the others are there.
func (r *Registry) Restore(k Kept) error {
	var wrong error
	for _, s := range k.Sources {
		number, err := strconv.Atoi(strings.TrimPrefix(s.ID, remotePrefix))
		if err != nil || number < 1 || number > maxAdded || r.find(s.ID) != nil || len(r.remote) >= maxRemote || CheckURL(s.URL) != nil {
			wrong = errors.Join(wrong, fmt.Errorf("source: %.64q is not taken up again", s.ID))
			continue
		}
		r.add(number, s.Name, s.URL)
		e := r.find(s.ID)
		if e.wanted, e.keyGone = s.Connect, s.Keyed; e.wanted && e.keyGone {
			e.State, e.Error = Failed, errKeyGone
		}
		_ = r.Choose(s.ID, s.Model) // one that can be none is not chosen
		r.added = max(r.added, number)
	}
	r.added = max(r.added, min(k.Added, maxAdded))
	return wrong
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

// Choose chooses one of a source's models; of a source that lists none, any.
func (r *Registry) Choose(id, model string) error {
	e := r.find(id)
	switch {
	case e == nil:
		return ErrUnknown
	case len(e.Models) > 0 && !slices.Contains(e.Models, model), model == "", len(model) > maxModel, !utf8.ValidString(model):
		return Mistake("The source has no such model.")
	}
	e.Model = model
	return nil
}

// SetKey keeps a source's key, or forgets it with an empty one. found says that it was found on this machine, and not
// given by a person: then it does not take the place of one, nor of one that a person took away.
func (r *Registry) SetKey(id, key string, found bool) error {
	e := r.find(id)
	switch {
	case e == nil:
		return ErrUnknown
	case len(key) > maxKey || strings.ContainsAny(key, "\r\n\x00"):
		return Mistake(fmt.Sprintf("A key is one line of at most %d bytes.", maxKey))
	case found && (e.key != "" || e.declined):
		return nil
	}
	e.key, e.HasKey, e.TokenAutoFilled, e.declined, e.keyGone = key, key != "", found && key != "", key == "", false
	return nil
}

// Paste keeps a key that was found on this machine, because a person said so.
func (r *Registry) Paste(id, key string) error {
	if err := r.SetKey(id, "", false); err != nil {
		return err
	}
	r.find(id).declined = false
	return r.SetKey(id, key, true)
}

// Key is a source's key, for whoever connects to it. It is never shown.
func (r *Registry) Key(id string) string {
	if e := r.find(id); e != nil {
		return e.key
	}
	return ""
}

// Count notes that a source has sent n signals.
func (r *Registry) Count(id string, n int, now time.Time) {
	if e := r.find(id); e != nil {
		e.meter.add(n, now)
	}
}

// Get is one source as it is now; false if there is none of that id.
func (r *Registry) Get(id string, now time.Time) (Source, bool) {
	e := r.find(id)
	if e == nil {
		return Source{}, false
	}
	return e.now(now), true
}

func (e *entry) now(now time.Time) Source {
	s := e.Source
	s.EventsPerSecond = e.meter.perSecond(now)
	s.Models = append([]string{}, e.Models...)
	return s
}

// List is all sources as they are now.
func (r *Registry) List(now time.Time) []Source {
	all := make([]Source, 0, len(r.local)+len(r.remote))
	for _, list := range [][]*entry{r.local, r.remote} {
		for _, e := range list {
			all = append(all, e.now(now))
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
	case ClaudeCodeID:
		return s.State == Disconnected
	case OpenClawID:
		return s.State == Disconnected && s.HasKey
	}
	return false
}
