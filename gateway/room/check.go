package room

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"google.golang.org/protobuf/proto"
	"nhooyr.io/websocket"
)

// Finding is one thing that was looked at.
type Finding struct {
	What string // such as "address"
	Says string // what was found
	Do   string // what to do about it; empty where all is well
}

// skew is how far two clocks may be apart: tokens are good from their making on.
const skew = 30 * time.Second

// Check looks whether rooms can work: address, clock, key, permissions, sound, and, where a room is named, whether an
// agent is there. It stops at the first thing on which the rest depends.
func Check(ctx context.Context, cfg Config, room string) []Finding {
	var found []Finding
	add := func(what, says, do string) bool {
		found = append(found, Finding{what, says, do})
		return do == ""
	}
	offset, err := clock(ctx, cfg.URL)
	if err != nil {
		add("address", "nobody answers at "+cfg.URL, "Start LiveKit there, such as with make livekit, or correct LIVEKIT_URL.")
		return found
	}
	add("address", cfg.URL+" answers", "")
	if offset.Abs() > skew {
		add("clock", fmt.Sprintf("LiveKit's is %s from ours", offset.Round(time.Second)), "Set both clocks by NTP: tokens are refused otherwise.")
	} else {
		add("clock", "both agree", "")
	}
	api := cfg.roomService()
	_, err = api.ListRooms(ctx, &livekit.ListRoomsRequest{})
	if err != nil {
		add("key", "it is not taken", "Set LIVEKIT_API_KEY and LIVEKIT_API_SECRET to a pair of the server's, below keys in its configuration.")
		return found
	}
	add("key", "it is taken", "")
	says, do := version(ctx, &cfg)
	add("version", says, do)
	if err := mayJoin(ctx, cfg, room); err != nil {
		add("permissions", err.Error(), "Look into the server's log: an old server, or a room that may not be made.")
	} else {
		add("permissions", "an agent and participants may join", "")
	}
	if cfg.Codec != nil {
		add("sound", "it is in this build", "")
	} else {
		add("sound", "it is not in this build: rooms are served in writing", "Install libopus-dev, and build with make.")
	}
	if room != "" {
		says, do := agentIn(ctx, api, room)
		add("agent", says, do)
	}
	return found
}

// oldest is the version of LiveKit from which on it has all that rooms need: agents, text streams, RPC and attributes.
var oldest = [2]int{1, 9}

// version asks LiveKit for its version, and says what to do about an old one: it tells workers, so one registers, under a
// name by which nobody asks for an agent.
func version(ctx context.Context, cfg *Config) (says, do string) {
	update := fmt.Sprintf("Bring LiveKit up to date: rooms need %d.%d or a later one.", oldest[0], oldest[1])
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	ws, err := dialAgents(ctx, cfg)
	switch {
	case errors.Is(err, errOld):
		return "it knows no agents: it is an old one", update
	case err != nil:
		return "it takes no agent", "Look into the server's log."
	}
	defer ws.CloseNow()
	b, err := proto.Marshal(registration("check-" + random()))
	if err == nil {
		err = ws.Write(ctx, websocket.MessageBinary, b)
	}
	for err == nil {
		var m livekit.ServerMessage
		if _, b, err = ws.Read(ctx); err != nil || proto.Unmarshal(b, &m) != nil || m.GetRegister() == nil {
			continue
		}
		v := m.GetRegister().GetServerInfo().GetVersion()
		var major, minor int
		if n, _ := fmt.Sscanf(v, "%d.%d", &major, &minor); n < 2 || major < oldest[0] || major == oldest[0] && minor < oldest[1] {
			return "it is " + cmp.Or(v, "an old one"), update
		}
		return "it is " + v, ""
	}
	return "it registers no agent", update
}

// clock says how far LiveKit's is ahead of ours.
func clock(ctx context.Context, address string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, httpURL(address), nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10))
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, nil // it does not say
	}
	return time.Until(at), nil
}

// mayJoin asks LiveKit whether it would take a participant's token.
func mayJoin(ctx context.Context, cfg Config, room string) error {
	if room == "" {
		room = "check"
	}
	token, err := auth.NewAccessToken(cfg.Key, cfg.Secret).SetIdentity("check").SetValidFor(agentTTL).
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: room}).ToJWT()
	if err != nil {
		return errors.New("a token cannot be made")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, httpURL(cfg.URL)+"/rtc/validate?"+url.Values{"access_token": {token}}.Encode(), nil)
	if err != nil {
		return errors.New("the address is none")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.New("LiveKit does not answer")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("LiveKit answers %d to one who would join", resp.StatusCode)
	}
	return nil
}

// agentIn says whether an agent is in a room, and what to do if not.
func agentIn(ctx context.Context, api *lksdk.RoomServiceClient, room string) (says, do string) {
	in, err := api.ListParticipants(ctx, &livekit.ListParticipantsRequest{Room: room})
	switch {
	case err != nil:
		return "LiveKit does not say", "Look into the server's log."
	case len(in.GetParticipants()) == 0:
		return "nobody is in that room now", "It begins when somebody joins it; the agent follows."
	}
	people := 0
	for _, p := range in.GetParticipants() {
		if p.GetKind() == livekit.ParticipantInfo_AGENT {
			return "it is in the room, as " + p.GetIdentity(), ""
		}
		people++
	}
	return fmt.Sprintf("it is not in the room, where there are %d", people),
		"Start vela serve with this LiveKit, or POST /api/livekit/rooms/" + url.PathEscape(room) + "/join to it."
}
