package auth

import (
	"errors"
	"slices"
	"time"
)

// ErrSessions is returned when a token has as many sessions as it may have.
var ErrSessions = errors.New("auth: the token has as many sessions as it may have")

// ErrStreams is returned when a token has as many event streams as it may have.
var ErrStreams = errors.New("auth: the token has as many event streams as it may have")

// Pass is what a token has bought its client. Made by [Authority.Admit].
type Pass struct {
	authority *Authority
	claims    claims
	expired   bool
}

// Turns are the kinds of turns that the token allows; none: every kind.
func (p *Pass) Turns() []string { return slices.Clone(p.claims.Turns) }

// Signals says whether the token allows that with signals.
func (p *Pass) Signals(what string) bool { return slices.Contains(p.claims.Signals, what) }

// ID is the token's own: that of every pass that it has bought.
func (p *Pass) ID() string { return p.claims.ID }

// Expires is when the token is over. What was begun with it goes on.
func (p *Pass) Expires() time.Time { return p.claims.ExpiresAt.Time }

// Enter takes one of the token's places for a session. Whoever entered calls leave once, when the session has ended.
func (p *Pass) Enter() (leave func(), err error) {
	if p.expired {
		return nil, ErrExpired
	}
	return p.place(func(u *usage) *int { return &u.sessions }, ErrSessions)
}

// Watch takes one of the token's places for an event stream, of which it has as many as for sessions. Whoever watches calls
// leave once, at the end.
func (p *Pass) Watch() (leave func(), err error) {
	return p.place(func(u *usage) *int { return &u.streams }, ErrStreams)
}

// place takes one of a kind of places, of which the token has as many as sessions; full is returned where none is left.
func (p *Pass) place(of func(*usage) *int, full error) (leave func(), err error) {
	a := p.authority
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := of(a.of(p.claims))
	if *taken >= p.claims.Sessions {
		return nil, full
	}
	*taken++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		*taken--
	}, nil
}

// Take takes d of the token's minutes of audio. It is false, and nothing is taken, when fewer are left.
func (p *Pass) Take(d time.Duration) bool {
	a := p.authority
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.of(p.claims)
	if u.audio+d > time.Duration(p.claims.Minutes)*time.Minute {
		return false
	}
	u.audio += d
	return true
}

// usage is what has been used of one token. Guarded by the authority's lock.
type usage struct {
	sessions int
	streams  int
	audio    time.Duration
	expires  time.Time
}

// of finds a token's usage. Only tokens of our own making get here, so their number is bounded by who holds a key.
func (a *Authority) of(c claims) *usage {
	u, ok := a.usage[c.ID]
	if !ok {
		a.forget()
		u = &usage{expires: c.ExpiresAt.Add(leeway)}
		a.usage[c.ID] = u
	}
	return u
}

// forget drops what has been used of tokens that cannot be used again.
func (a *Authority) forget() {
	now := time.Now()
	for id, u := range a.usage {
		if u.sessions == 0 && now.After(u.expires) {
			delete(a.usage, id)
		}
	}
}

// runs says whether a session of the token with this id runs.
func (a *Authority) runs(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ok := a.usage[id]
	return ok && u.sessions > 0
}
