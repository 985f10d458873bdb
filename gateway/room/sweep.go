package room

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
)

// LiveKit sends an agent into a room once, when the room begins: not again when that agent's process dies, and not when
// no worker was there. So every gateway looks from time to time for people who have no agent, and goes to them. Two that
// come at once are one: see Room.came.
//
// Whom an agent has left on purpose, after a silence or because it was asked to, has a mark in LiveKit: an attribute of
// the participant's own, which ends with their stay. Nobody follows them; an agent that is asked for takes the mark away.

const (
	sweepEvery = 10 * time.Second
	maxLooks   = 32 // rooms that are looked into in one sweep, at random where there are more

	attrLeft = "vela.agent_left" // why the agent left whoever has it, as in the metrics
)

// How long LiveKit's API may take. Variables for the tests.
var (
	apiTime  = 5 * time.Second
	markTime = 2 * time.Second // it keeps somebody waiting who leaves
)

// roomService is LiveKit's API of rooms.
func (c *Config) roomService() *lksdk.RoomServiceClient {
	return lksdk.NewRoomServiceClient(httpURL(c.URL), c.Key, c.Secret)
}

// sweep looks for people without an agent, at once and then every sweepEvery, until ctx is done. Gateways that were
// started together do not look at the same moment.
func (r *Rooms) sweep(ctx context.Context) {
	next := time.NewTimer(rand.N(sweepEvery))
	defer next.Stop()
	for {
		r.lookAround(ctx)
		select {
		case <-next.C:
			next.Reset(sweepEvery)
		case <-ctx.Done():
			return
		}
	}
}

// lookAround is one sweep. What LiveKit does not say now, it is asked next time.
func (r *Rooms) lookAround(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, apiTime)
	defer cancel()
	list, err := r.cfg.roomService().ListRooms(ctx, &livekit.ListRoomsRequest{})
	if err != nil {
		return
	}
	rooms := list.GetRooms()
	looks := 0
	for _, i := range rand.Perm(len(rooms)) {
		name := rooms[i].GetName()
		if rooms[i].GetNumParticipants() == 0 || r.isIn(name) {
			continue
		}
		if load, _ := r.load(); load >= 1 || looks == maxLooks {
			return
		}
		looks++
		r.look(ctx, name)
	}
}

// look goes into a room if somebody waits there.
func (r *Rooms) look(ctx context.Context, name string) {
	in, err := r.cfg.roomService().ListParticipants(ctx, &livekit.ListParticipantsRequest{Room: name})
	if err != nil || !waits(in.GetParticipants()) || !r.isOurs(ctx, name) {
		return
	}
	r.log.Info("people have no agent", "room", name)
	if err := r.Join(name); err != nil {
		r.log.Warn("a room has no agent", "room", name, "error", err)
	}
}

// isOurs says whether a room is one that LiveKit would send us into: with a name of its own an agent only goes where it
// was asked for.
func (r *Rooms) isOurs(ctx context.Context, name string) bool {
	if r.cfg.Agent == "" {
		return true
	}
	api := lksdk.NewAgentDispatchServiceClient(httpURL(r.cfg.URL), r.cfg.Key, r.cfg.Secret)
	list, err := api.ListDispatch(ctx, &livekit.ListAgentDispatchRequest{Room: name})
	if err != nil {
		return false
	}
	for _, d := range list.GetAgentDispatches() {
		if d.GetAgentName() == r.cfg.Agent {
			return true
		}
	}
	return false
}

// isIn says whether one of ours is in a room, or on its way.
func (r *Rooms) isIn(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.places[name]
	return p != nil && (p.room != nil || p.coming)
}

// waits says whether somebody is in a room whom no agent has left on purpose, and no agent.
func waits(people []*livekit.ParticipantInfo) bool {
	somebody := false
	for _, p := range people {
		if p.GetKind() == livekit.ParticipantInfo_AGENT {
			return false
		}
		somebody = somebody || isPerson(p) && p.GetAttributes()[attrLeft] == ""
	}
	return somebody
}

// isPerson says whether a participant is somebody to talk to, at a screen or on the telephone.
func isPerson(p *livekit.ParticipantInfo) bool {
	return p.GetKind() == livekit.ParticipantInfo_STANDARD || p.GetKind() == livekit.ParticipantInfo_SIP
}

// mark notes at LiveKit why an agent left these participants; with no reason it takes the mark away. Who is not there any
// more has none.
func mark(ctx context.Context, cfg *Config, room string, identities []string, why string) {
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	for _, identity := range identities {
		_, _ = cfg.roomService().UpdateParticipant(ctx, &livekit.UpdateParticipantRequest{
			Room: room, Identity: identity, Attributes: map[string]string{attrLeft: why},
		})
	}
}
