package room

import (
	"errors"
	"sync"
	"time"

	"vela/gateway/auth"
)

// guests knows whose token of ours let whom into which room, so that being there takes one of the token's sessions, and
// speaking its minutes. Whoever came with a token that LiveKit's own keys made is nobody's guest: what they may do at
// LiveKit is for those who hold the keys, and nothing of theirs is counted. Its methods may be called from any goroutine; the lock guards the table.
type guests struct {
	mu    sync.Mutex
	table map[stay]*guest
}

// stay is somebody in a room.
type stay struct{ room, identity string }

type guest struct {
	pass  *auth.Pass // nil: who holds a server key let them in
	until time.Time  // while they are not there: they cannot come any more then
	leave func()     // gives the session's place back; nil while they are not there
}

const (
	maxGuests  = 10_000
	comesAgain = 15 * time.Minute // longer than LiveKit lets anybody come back with the token of a stay
)

var errGuests = errors.New("room: more people were let into rooms than may be")

// invite notes whose token lets somebody into a room; nil is a server key's holder, which counts nothing. It returns
// auth.ErrSessions when the token has no place for them, and auth.ErrExpired when it is over; one that somebody is there with
// is good for the same room again.
func (g *guests) invite(at stay, pass *auth.Pass) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
	old := g.table[at]
	if old != nil && old.leave != nil && sameToken(old.pass, pass) {
		return nil
	}
	leave, err := enter(pass)
	if err != nil {
		return err
	}
	leave() // they may never come
	if len(g.table) >= maxGuests {
		return errGuests
	}
	if old != nil && old.leave != nil {
		old.leave() // LiveKit sends away who had the identity before
	}
	g.table[at] = &guest{pass: pass, until: time.Now().Add(guestTTL)}
	return nil
}

// enter takes a session's place of a pass, where it is to be counted.
func enter(pass *auth.Pass) (leave func(), err error) {
	if pass == nil {
		return func() {}, nil
	}
	return pass.Enter()
}

func sameToken(a, b *auth.Pass) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID() == b.ID()
}

// forget drops who cannot come any more. Call it with the lock held.
func (g *guests) forget() {
	now := time.Now()
	for at, who := range g.table {
		if who.leave == nil && now.After(who.until) {
			delete(g.table, at)
		}
	}
}

// came takes a session's place for somebody who is there now. It returns whether we let them in and with which token, or why
// there is no place.
func (g *guests) came(at stay) (pass *auth.Pass, invited bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	who := g.table[at]
	switch {
	case who == nil:
		return nil, false, nil
	case who.leave == nil:
		leave, err := enter(who.pass)
		if err != nil {
			return nil, true, err
		}
		who.leave = leave
	}
	return who.pass, true, nil
}

// left gives the place back.
func (g *guests) left(at stay) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if who := g.table[at]; who != nil && who.leave != nil {
		who.leave()
		who.leave, who.until = nil, time.Now().Add(comesAgain)
	}
}
