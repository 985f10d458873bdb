package room

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/twitchtv/twirp"
)

// LiveKit's API answers at last, also on a machine that stands still for a while.
func init() { apiTime, markTime = time.Minute, time.Minute }

// fakeLiveKit is LiveKit's API, with people in rooms. What is not written out here is not to be asked for.
type fakeLiveKit struct {
	livekit.RoomService
	livekit.AgentDispatchService

	mu         sync.Mutex
	rooms      map[string][]*livekit.ParticipantInfo
	dispatched map[string]string // the agent that was asked for, by room
	looks      int
}

func (f *fakeLiveKit) ListRooms(context.Context, *livekit.ListRoomsRequest) (*livekit.ListRoomsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := &livekit.ListRoomsResponse{}
	for name, people := range f.rooms {
		list.Rooms = append(list.Rooms, &livekit.Room{Name: name, NumParticipants: uint32(len(people))})
	}
	return list, nil
}

func (f *fakeLiveKit) ListParticipants(_ context.Context, req *livekit.ListParticipantsRequest) (*livekit.ListParticipantsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	return &livekit.ListParticipantsResponse{Participants: f.rooms[req.GetRoom()]}, nil
}

func (f *fakeLiveKit) UpdateParticipant(_ context.Context, req *livekit.UpdateParticipantRequest) (*livekit.ParticipantInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.rooms[req.GetRoom()] {
		if p.GetIdentity() == req.GetIdentity() {
			p.Attributes = req.GetAttributes()
			return p, nil
		}
	}
	return nil, twirp.NotFoundError("nobody of that name")
}

func (f *fakeLiveKit) ListDispatch(_ context.Context, req *livekit.ListAgentDispatchRequest) (*livekit.ListAgentDispatchResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &livekit.ListAgentDispatchResponse{AgentDispatches: []*livekit.AgentDispatch{{AgentName: f.dispatched[req.GetRoom()]}}}, nil
}

// serveAPI serves it, and has the house ask there.
func (h *house) serveAPI(f *fakeLiveKit) {
	mux := http.NewServeMux()
	for _, s := range []livekit.TwirpServer{livekit.NewRoomServiceServer(f), livekit.NewAgentDispatchServiceServer(f)} {
		mux.Handle(s.PathPrefix(), s)
	}
	server := httptest.NewServer(mux)
	h.t.Cleanup(server.Close)
	h.cfg.URL = strings.Replace(server.URL, "http", "ws", 1)
}

func here(kind livekit.ParticipantInfo_Kind, identity, left string) *livekit.ParticipantInfo {
	return &livekit.ParticipantInfo{Kind: kind, Identity: identity, Attributes: map[string]string{attrLeft: left}}
}

const (
	standard = livekit.ParticipantInfo_STANDARD
	agent    = livekit.ParticipantInfo_AGENT
)

// A sweep goes where people wait for an agent, and nowhere else.
func TestWhereASweepGoes(t *testing.T) {
	h := open(t, Config{})
	f := &fakeLiveKit{rooms: map[string][]*livekit.ParticipantInfo{
		"waiting":   {here(standard, "ann", "")},
		"calling":   {here(livekit.ParticipantInfo_SIP, "+1555", "")},
		"served":    {here(standard, "ann", ""), here(agent, "agent-of-another-gateway", "")},
		"held":      {here(standard, "ann", "hold")},
		"held, new": {here(standard, "ann", "hold"), here(standard, "bob", "")},
		"recorded":  {here(livekit.ParticipantInfo_EGRESS, "recorder", "")},
		"empty":     {},
	}}
	h.serveAPI(f)
	h.lookAround(t.Context())
	for name, want := range map[string]bool{
		"waiting": true, "calling": true, "served": false, "held": false, "held, new": true, "recorded": false, "empty": false,
	} {
		if got := h.isIn(name); got != want {
			t.Errorf("%s: in it: %v", name, got)
		}
	}
	before := f.looks
	h.lookAround(t.Context())
	if again := f.looks - before; again != 3 || h.connections() > 3 {
		t.Errorf("the next sweep looked into %d rooms, and there are %d connections", again, h.connections())
	}
}

// An agent with a name of its own goes only where it was asked for.
func TestASweepOfANamedAgent(t *testing.T) {
	h := open(t, Config{Agent: "vela"})
	h.serveAPI(&fakeLiveKit{
		rooms: map[string][]*livekit.ParticipantInfo{
			"ours": {here(standard, "ann", "")}, "theirs": {here(standard, "ann", "")}, "nobody's": {here(standard, "ann", "")},
		},
		dispatched: map[string]string{"ours": "vela", "theirs": "other"},
	})
	h.lookAround(t.Context())
	if !h.isIn("ours") || h.isIn("theirs") || h.isIn("nobody's") {
		t.Errorf("ours: %v, theirs: %v, nobody's: %v", h.isIn("ours"), h.isIn("theirs"), h.isIn("nobody's"))
	}
}

// However many rooms there are, a sweep asks about so many, and takes no more than there is place for.
func TestASweepIsBounded(t *testing.T) {
	many := &fakeLiveKit{rooms: map[string][]*livekit.ParticipantInfo{}}
	for i := range 100 {
		many.rooms[fmt.Sprint("room ", i)] = []*livekit.ParticipantInfo{here(standard, "ann", "hold")}
	}
	h := open(t, Config{})
	h.serveAPI(many)
	h.lookAround(t.Context())
	if many.looks != maxLooks {
		t.Errorf("%d looks", many.looks)
	}
	for i := range 100 {
		many.rooms[fmt.Sprint("room ", i)] = []*livekit.ParticipantInfo{here(standard, "ann", "")}
	}
	full := open(t, Config{MaxRooms: 2})
	full.serveAPI(many)
	full.cfg.NewSession = nil // never asked for: it would panic
	full.places["a"], full.places["b"] = &place{room: &Room{}}, &place{room: &Room{}}
	full.lookAround(t.Context())
	delete(full.places, "a")
	delete(full.places, "b")
	if many.looks != maxLooks {
		t.Error("a gateway that is full looked for more")
	}
}

// LiveKit says that an agent has gone: whoever is left gets another one, unless it left on purpose.
func TestTheWebhookOfAnAgentThatIsGone(t *testing.T) {
	h := open(t, Config{})
	h.serveAPI(&fakeLiveKit{rooms: map[string][]*livekit.ParticipantInfo{
		"killed": {here(standard, "ann", "")}, "held": {here(standard, "ann", "hold")}, "quiet": {here(standard, "ann", "")},
	}})
	tell := func(event string) {
		t.Helper()
		if err := h.Webhook(signed(t, h, event)); err != nil {
			t.Fatal(err)
		}
	}
	for _, room := range []string{"killed", "held"} {
		tell(fmt.Sprintf(`{"event": "participant_left", "room": {"name": %q}, "participant": {"kind": "AGENT"}}`, room))
	}
	tell(`{"event": "participant_left", "room": {"name": "quiet"}, "participant": {"identity": "bob"}}`)
	if !h.isIn("killed") || h.isIn("held") || h.isIn("quiet") {
		t.Errorf("killed: %v, held: %v, quiet: %v", h.isIn("killed"), h.isIn("held"), h.isIn("quiet"))
	}
}

// signed is a webhook of LiveKit's.
func signed(t *testing.T, h *house, event string) *http.Request {
	t.Helper()
	sum := sha256.Sum256([]byte(event))
	token, err := auth.NewAccessToken(h.cfg.Key, h.cfg.Secret).SetSha256(base64.StdEncoding.EncodeToString(sum[:])).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(event))
	req.Header.Set("Authorization", token)
	req.Header.Set("Content-Type", "application/webhook+json")
	return req
}

// Whom the agent leaves on purpose is marked, and nobody else.
func TestWhoIsMarked(t *testing.T) {
	for why, want := range map[error]string{
		errHold: "ann bob hold", errEnded: "ann bob ended", errRemoved: "ann bob removed", errAgent: "", errShutdown: "", errLost: "", errMoved: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			h := open(t, Config{})
			s := h.join("kitchen")
			s.happens(came{identity: "bob"})
			synctest.Wait()
			s.room.over(why)
			synctest.Wait()
			if got := strings.Join(s.excused, " "); got != want {
				t.Errorf("%v: %s, want %s", why, got, want)
			}
		})
	}
}

func TestMark(t *testing.T) {
	h := open(t, Config{})
	ann := here(standard, "ann", "")
	h.serveAPI(&fakeLiveKit{rooms: map[string][]*livekit.ParticipantInfo{"kitchen": {ann}}})
	for _, why := range []string{"hold", ""} {
		mark(t.Context(), &h.cfg, "kitchen", []string{"nobody", "ann"}, why)
		if got := ann.Attributes[attrLeft]; got != why {
			t.Errorf("ann has %q, want %q", got, why)
		}
	}
}
