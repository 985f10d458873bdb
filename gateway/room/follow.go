package room

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"vela/gateway/auth"
	"vela/protocol"
)

// A room's session can follow other agents, as one of a socket does (session/follow.go): whoever is in the room may say
// whom, by follow in session.start, if they may. What is followed stands in an attribute of the agent's, so that everybody
// knows it, and what there is to follow is told by sources.get.
//
// Those may who have the right to follow signals, and where the gateway asks nobody who they are everybody has it. Whom it
// let in with a token without the right, or did not let in itself, may choose among what the gateway's file lets every
// room follow.

// Source is somebody whose tools a room can show.
type Source struct {
	ID   string `json:"id"`
	Name string `json:"name"`           // for a person
	Here bool   `json:"here,omitempty"` // it is connected now
}

// sourcesTime is how long it may take to learn what there is to follow.
const sourcesTime = 2 * time.Second

var errNoFollow = &callError{protocol.CodeUnsupported, "Your token does not let you choose whose work is shown here. Ask whoever runs the gateway for one with the right to follow signals. Nothing changed."}

// sourcesGet is the call that asks what there is to follow.
type sourcesGet struct{}

// Type implements [protocol.Message].
func (sourcesGet) Type() string { return "sources.get" }

// follows says whether somebody has the right to follow any source: every one is let in by us with what pass they came with,
// or known to nobody here.
func (c *Config) follows(invited bool, pass *auth.Pass) bool {
	switch {
	case !c.Guarded:
		return true
	case pass != nil:
		return pass.Signals(auth.FollowSignals)
	}
	return invited // with a server key
}

// mayFollow says whether somebody may have these sources followed.
func (r *Room) mayFollow(who person, sources []string) bool {
	return who.follows || !slices.ContainsFunc(sources, func(s string) bool { return !slices.Contains(r.cfg.Follow, s) })
}

// followable makes the answer to sources.get, for somebody with the right to follow any source or without.
func (r *Room) followable(any bool) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, sourcesTime)
		defer cancel()
		answer := struct {
			Sources []Source `json:"sources"`
		}{[]Source{}}
		var known []Source
		if r.cfg.Sources != nil {
			known = r.cfg.Sources(ctx)
		}
		for _, id := range r.cfg.Follow {
			if !slices.ContainsFunc(known, func(s Source) bool { return s.ID == id }) {
				answer.Sources = append(answer.Sources, Source{ID: id, Name: id})
			}
		}
		for _, s := range known {
			if any || slices.Contains(r.cfg.Follow, s.ID) {
				answer.Sources = append(answer.Sources, s)
			}
		}
		for {
			b, err := json.Marshal(answer)
			if err != nil || len(b) <= maxAnswer || len(answer.Sources) == 0 {
				return b, err
			}
			answer.Sources = answer.Sources[:len(answer.Sources)-1]
		}
	}
}
