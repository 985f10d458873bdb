package room

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	lkauth "github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/livekit/protocol/webhook"

	"vela/gateway/auth"
)

// How long tokens are good to join with. Who is in a room stays there.
const (
	agentTTL = time.Minute
	guestTTL = 15 * time.Minute
	shortTTL = 10 * time.Second // of who comes with a pass that is over: they are there, and come back
)

// agentTicket lets ourselves into a room.
func (r *Rooms) agentTicket(room, identity string) (ticket, error) {
	yes := true
	token, err := lkauth.NewAccessToken(r.cfg.Key, r.cfg.Secret).
		SetIdentity(identity).SetName("Vela").SetKind(livekit.ParticipantInfo_AGENT).SetValidFor(agentTTL).
		SetVideoGrant(&lkauth.VideoGrant{RoomJoin: true, Room: room, Agent: true, CanUpdateOwnMetadata: &yes}).ToJWT()
	if err != nil {
		return ticket{}, fmt.Errorf("room: token: %w", err)
	}
	return ticket{r.cfg.URL, token}, nil
}

// Token lets a participant into one room: to speak, hear, write and read there, and nothing else. With a pass of ours it
// ends with the pass, and what they say there is taken from it; nil, of who shows a server key or has to show nothing, counts
// nothing. It returns auth.ErrSessions and auth.ErrExpired for a pass with which nobody more can come.
func (r *Rooms) Token(room, identity, name, metadata string, attributes map[string]string, pass *auth.Pass) (url, token string, err error) {
	if room == "" {
		room = "room-" + random()
	}
	if identity == "" {
		identity = "guest-" + random() + random()
	}
	ttl := guestTTL
	if pass != nil || r.cfg.Guarded {
		if err := r.guests.invite(stay{room, identity}, pass); err != nil {
			return "", "", err
		}
	}
	if pass != nil {
		ttl = min(ttl, max(time.Until(pass.Expires()), shortTTL))
	}
	yes := true
	grant := &lkauth.VideoGrant{
		RoomJoin: true, Room: room, CanPublish: &yes, CanSubscribe: &yes, CanPublishData: &yes, CanUpdateOwnMetadata: &yes,
	}
	grant.SetCanPublishSources([]livekit.TrackSource{livekit.TrackSource_MICROPHONE})
	token, err = lkauth.NewAccessToken(r.cfg.Key, r.cfg.Secret).SetIdentity(identity).SetName(name).SetMetadata(metadata).
		SetAttributes(attributes).SetValidFor(ttl).SetVideoGrant(grant).ToJWT()
	if err != nil {
		return "", "", fmt.Errorf("room: token: %w", err)
	}
	return r.cfg.Public, token, nil
}

// Address is where participants find LiveKit; empty where they reach it through the gateway.
func (r *Rooms) Address() string { return r.cfg.Public }

// ErrForged is returned for a webhook that LiveKit did not sign with our key.
var ErrForged = errors.New("room: the webhook is not signed with our key")

// maxWebhook bounds what LiveKit may tell us at once, in bytes.
const maxWebhook = 256 << 10

// Webhook takes what LiveKit tells of a room: an agent goes where a participant has come, and where one has gone that people
// still wait for. It returns ErrForged for what is not LiveKit's.
func (r *Rooms) Webhook(req *http.Request) error {
	req.Body = http.MaxBytesReader(nil, req.Body, maxWebhook)
	event, err := webhook.ReceiveWebhookEvent(req, lkauth.NewSimpleKeyProvider(r.cfg.Key, r.cfg.Secret))
	if err != nil {
		return ErrForged
	}
	name, who := event.GetRoom().GetName(), event.GetParticipant()
	switch kind := event.GetEvent(); {
	case kind == webhook.EventParticipantJoined && isPerson(who):
		return r.Join(name)
	case kind == webhook.EventParticipantLeft && who.GetKind() == livekit.ParticipantInfo_AGENT && !r.isIn(name):
		ctx, cancel := context.WithTimeout(req.Context(), apiTime)
		defer cancel()
		r.look(ctx, name)
	}
	return nil
}

// httpURL is the address of LiveKit's API, where the socket's was given.
func httpURL(url string) string {
	if rest, ok := strings.CutPrefix(url, "ws"); ok {
		return "http" + rest
	}
	return url
}
