package source

import (
	"context"
	"reflect"
	"sync"
	"time"
)

// Times of [Sources.Run].
const (
	newsEvery = 500 * time.Millisecond // watchers are told at most as often
	scanEvery = 30 * time.Second
)

// Errors of what a source cannot do as it is.
const (
	ErrNotConnected Mistake = "The source is not connected. Connect it first."
	ErrNoPrompts    Mistake = "The source takes no prompts: it is no model."
	ErrNoModel      Mistake = "The source has no model chosen. Choose one first."
	ErrBusy         Mistake = "The source answers as many prompts as it may already. Stop them, or wait."
	ErrNoText       Mistake = "There is nothing to ask."
)

// keeper is the state of running [Sources]. It belongs to the goroutine of [Sources.Run].
type keeper struct {
	*Registry
	sources *Sources
	ctx     context.Context // ends all children
	over    bool            // it has: nothing begins any more

	children map[string]*child // by the ids of their sources
	scanning chan struct{}     // closed when what is looked for was found; nil when nothing is
	scans    *time.Timer       // the next scan
	once     sync.Once         // closes the sources' found
	offered  map[string]bool   // sources that connected by themselves, or were disconnected by a person, since they appeared

	watchers map[chan []Source][]Source // and what each was told last
	toldAt   time.Time                  // when those who were there already were told
	kept     Kept                       // what was kept last
}

func newKeeper(ctx context.Context, s *Sources) *keeper {
	k := &keeper{
		Registry: new(Registry), sources: s, ctx: ctx, children: map[string]*child{}, scans: time.NewTimer(scanEvery),
		offered: map[string]bool{}, watchers: map[chan []Source][]Source{},
	}
	if err := k.Restore(s.cfg.Kept); err != nil {
		s.log.Warn("not every source is there again", "error", err)
	}
	k.kept = k.Keep()
	return k
}

// resume connects the sources that another process had connected, but for those that want their keys first.
func (k *keeper) resume() {
	for _, e := range k.remote {
		if e.wanted && !e.keyGone {
			_ = k.connect(e.ID) // it is there, and nothing is over
		}
	}
}

// stop ends all children; they say themselves that they have.
func (k *keeper) stop() {
	k.over = true
	k.scans.Stop()
	for _, c := range k.children {
		c.end()
	}
}

// busy says whether there is somebody left to wait for.
func (k *keeper) busy() bool { return len(k.children) > 0 || k.scanning != nil }

func (k *keeper) get(id string) (Source, error) {
	s, ok := k.Get(id, time.Now())
	if !ok {
		return Source{}, ErrUnknown
	}
	return s, nil
}

// list is all sources, with what was counted up to now.
func (k *keeper) list(now time.Time) []Source {
	k.sample(now)
	return k.List(now)
}

// sample takes over what the children counted.
func (k *keeper) sample(now time.Time) {
	m := k.sources.cfg.Metrics
	for id, c := range k.children {
		taken, dropped := c.gate.tallies()
		e := k.find(id)
		k.Count(id, int(taken-c.taken), now)
		m.taken.WithLabelValues(string(e.Protocol)).Add(float64(taken - c.taken))
		m.dropped.WithLabelValues(string(e.Protocol)).Add(float64(dropped - c.dropped))
		c.taken, c.dropped = taken, dropped
		if e.State == Connected {
			e.Error = c.why
			if e.Error == "" {
				e.Error = c.gate.complaint(now)
			}
		}
	}
	states := map[State]int{Disconnected: 0, Connecting: 0, Connected: 0, Failed: 0, Unavailable: 0}
	for _, list := range [][]*entry{k.local, k.remote} {
		for _, e := range list {
			states[e.State]++
		}
	}
	for state, n := range states {
		m.states.WithLabelValues(string(state)).Set(float64(n))
	}
}

// tell tells the watchers what has changed, unless they were told a moment ago: then the next tick does.
func (k *keeper) tell(now time.Time, tick bool) {
	if len(k.watchers) == 0 || !tick && now.Sub(k.toldAt) < newsEvery {
		return
	}
	all := k.List(now)
	for news, told := range k.watchers {
		if reflect.DeepEqual(all, told) {
			continue
		}
		k.watchers[news], k.toldAt = all, now
		select {
		case <-news: // what it did not read in time
		default:
		}
		news <- all
	}
}

// scan looks for what runs on this machine, unless that is being done. The channel is closed when it is done.
func (k *keeper) scan() <-chan struct{} {
	if k.scanning != nil {
		return k.scanning
	}
	done := make(chan struct{})
	if k.over || k.sources.cfg.Look == nil {
		close(done)
		return done
	}
	k.scanning = done
	go k.sources.look(k.ctx)
	return done
}

// look is one scan. The last thing it does is to hand over what it found.
func (s *Sources) look(ctx context.Context) {
	found := s.cfg.Look(ctx)
	token := ""
	if s.cfg.Token != nil {
		token, _ = s.cfg.Token() // whoever asks for it is told why there is none
	}
	s.tell(func(k *keeper) { k.found(found, token) })
}

// found takes what a scan has found, and connects those that do so by themselves.
func (k *keeper) found(found []Found, token string) {
	close(k.scanning)
	k.scanning = nil
	if k.over {
		return
	}
	defer k.once.Do(func() { close(k.sources.found) })
	k.scans.Reset(scanEvery)
	k.Update(found)
	if e := k.find(OpenClawID); e != nil && token != "" && onThisMachine(e.URL) {
		_ = k.SetKey(OpenClawID, token, true) // a token that is no key is none
	}
	for _, e := range k.local {
		switch {
		case e.State == Unavailable:
			delete(k.offered, e.ID)
		case AutoConnect(e.Source) && !k.offered[e.ID] && (e.ID != ClaudeCodeID || k.sources.cfg.Claude):
			_ = k.connect(e.ID) // it is there, and nothing is over
		}
	}
}

func (k *keeper) add(name, address, key string) (Source, error) {
	s, err := k.Add(name, address)
	if err != nil {
		return Source{}, err
	}
	if key != "" {
		err = k.SetKey(s.ID, key, false)
	}
	if err == nil {
		err = k.keep()
	}
	if err != nil {
		_ = k.Remove(s.ID) // it was added just now
		return Source{}, err
	}
	return k.get(s.ID)
}

// remove forgets a source. One that is connected is disconnected first: the channel is closed when it is to be called
// again.
func (k *keeper) remove(id string) (<-chan struct{}, error) {
	if e := k.find(id); e != nil && !e.Local && k.children[id] != nil {
		return k.disconnect(id), nil
	}
	if err := k.Remove(id); err != nil {
		return nil, err
	}
	return nil, k.keep()
}

// keep keeps what has changed.
func (k *keeper) keep() error {
	now := k.Keep()
	if k.sources.cfg.Keep == nil || reflect.DeepEqual(now, k.kept) {
		return nil
	}
	if err := k.sources.cfg.Keep(now); err != nil {
		return err
	}
	k.kept = now
	return nil
}

// want notes whether a source is to be connected after a restart.
func (k *keeper) want(e *entry, wanted bool) {
	if e == nil || e.Local { // what is on this machine is found anew, and connects by itself or not at all
		return
	}
	e.wanted = wanted
	k.note()
}

// note keeps what has changed of sources that are there: what cannot be kept is the operator's affair.
func (k *keeper) note() {
	if err := k.keep(); err != nil {
		k.sources.log.Warn("a restart will not know how the sources are", "error", err)
	}
}

// setKey sets a source's key by one of the registry's functions. A source that waits for it is connected.
func (k *keeper) setKey(id string, set func() error) error {
	e := k.find(id)
	waits := e != nil && e.keyGone && e.wanted && k.children[id] == nil
	if err := set(); err != nil {
		return err
	}
	k.note()
	if !waits {
		return nil
	}
	e.State, e.Error = Disconnected, ""
	if e.key == "" {
		return nil
	}
	return k.connect(id)
}

func (k *keeper) choose(id, model string) error {
	defer k.note()
	return k.Choose(id, model)
}

// connect begins a child for a source. If there is one that is about to end, it begins another one after it.
func (k *keeper) connect(id string) error {
	e := k.find(id)
	if e != nil && !k.over {
		k.want(e, true)
	}
	switch c := k.children[id]; {
	case e == nil:
		return ErrUnknown
	case k.over:
		return ErrOver
	case c != nil:
		c.again = c.leaving
		return nil
	}
	k.offered[id] = true
	e.State, e.Error = Connecting, ""
	k.children[id] = newChild(k.ctx, k.sources, e.ID)
	return nil
}

// disconnect ends a source's child. The channel is closed when that has ended; it is nil if there is none.
func (k *keeper) disconnect(id string) <-chan struct{} {
	k.offered[id] = true
	e, c := k.find(id), k.children[id]
	k.want(e, false)
	if c == nil {
		if e != nil && e.State == Failed {
			e.State, e.Error = Disconnected, ""
		}
		return nil
	}
	c.again = false
	c.end()
	return c.gone
}

// connected is the child of a source that is connected.
func (k *keeper) connected(id string) (*child, error) {
	e := k.find(id)
	switch {
	case e == nil:
		return nil, ErrUnknown
	case e.State != Connected || k.children[id].leaving:
		return nil, ErrNotConnected
	}
	return k.children[id], nil
}

// ended notes that one of a child's goroutines has returned; with the last of them the child is gone.
func (k *keeper) ended(c *child) {
	if c.working--; c.working > 0 {
		return
	}
	k.sample(time.Now())
	delete(k.children, c.id)
	close(c.gone)
	if c.again {
		_ = k.connect(c.id) // unless all is over
	}
}

// show notes how a child's source is.
func (k *keeper) show(c *child, state State, why string) {
	e := k.find(c.id)
	e.State, e.Error, c.why = state, why, why
	if state == Disconnected && c.ctx.Err() == nil {
		k.want(e, false) // its other end has ended it
	}
}

// prompt begins to ask a source's model.
func (k *keeper) prompt(id, text string) (string, error) {
	c, err := k.connected(id)
	if err != nil {
		return "", err
	}
	e := k.find(id)
	switch {
	case e.Protocol != OpenAI && e.Protocol != Anthropic:
		return "", ErrNoPrompts
	case text == "":
		return "", ErrNoText
	case e.Model == "":
		return "", ErrNoModel
	case len(c.prompts) >= maxPrompts:
		return "", ErrBusy
	}
	return c.ask(e.Source, e.key, text), nil
}

func (k *keeper) stopPrompts(id string) error {
	if k.find(id) == nil {
		return ErrUnknown
	}
	if c := k.children[id]; c != nil {
		for _, stop := range c.prompts {
			stop()
		}
	}
	return nil
}

// answered notes that a prompt has ended, and why it failed.
func (k *keeper) answered(c *child, id, failure string) {
	delete(c.prompts, id)
	if e := k.find(c.id); e.State == Connected {
		if c.why = ""; failure != "" {
			c.why = "The last prompt failed: " + failure
		}
		e.Error = c.why
	}
	k.ended(c)
}
