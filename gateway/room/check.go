package room

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/twitchtv/twirp"
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
		says, do := absent(cfg.URL, err)
		add("address", says, do)
		return found
	}
	add("address", cfg.URL+" answers", "")
	if offset.Abs() > skew {
		add("clock", fmt.Sprintf("LiveKit's is %s from ours", offset.Round(time.Second)), "Set both clocks by NTP: tokens are refused otherwise.")
	} else {
		add("clock", "both agree", "")
	}
	api := cfg.roomService()
	if err := asked(ctx, api); errors.Is(err, errKey) {
		add("key", "it is not taken", "Set LIVEKIT_API_KEY and LIVEKIT_API_SECRET to a pair of the server's, below keys in its configuration.")
		return found
	} else if err != nil {
		add("server", "what answers there is not LiveKit", "Correct LIVEKIT_URL: it is LiveKit's own address, without a path, and wss:// where it speaks TLS.")
		return found
	}
	add("key", "it is taken", "")
	says, do := version(ctx, &cfg)
	add("version", says, do)
	if err := mayJoin(ctx, cfg, room); errors.Is(err, errNoRoom) {
		add("permissions", "LiveKit makes no room by itself", "Make each room before somebody joins it, or have auto_create true below room in LiveKit's configuration.")
	} else if err != nil {
		add("permissions", err.Error(), "Look into the server's log, or bring LiveKit up to date.")
	} else {
		add("permissions", "an agent and participants may join", "")
	}
	if cfg.Codec != nil {
		add("sound", "it is in this build", "")
	} else {
		add("sound", "it is not in this build: rooms are served in writing", "Install libopus-dev, and build with make.")
	}
	if room != "" {
		says, do := agentIn(ctx, api, cfg.Agent, room)
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

// checkTime is how long one answer may take.
const checkTime = 10 * time.Second

// absent says why there was no answer from an address, and what to do about it.
func absent(address string, err error) (says, do string) {
	name, _ := errors.AsType[*net.DNSError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case name != nil:
		return "no machine has the name in " + address, "Correct LIVEKIT_URL."
	case certificate:
		return "the certificate of " + address + " is not trusted", "Set SSL_CERT_FILE to the certificate that signed it, or give LiveKit one that everybody trusts."
	case record, errors.Is(err, http.ErrSchemeMismatch):
		return address + " speaks no TLS", "Write ws:// in LIVEKIT_URL, or put LiveKit behind something with a certificate."
	}
	return "nobody answers at " + address, "Start LiveKit there, such as with make livekit, or correct LIVEKIT_URL."
}

// asked asks LiveKit for what its keys alone may know. It returns errKey when ours is not taken.
func asked(ctx context.Context, api *lksdk.RoomServiceClient) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	_, err := api.ListRooms(ctx, &livekit.ListRoomsRequest{})
	refused, ok := errors.AsType[twirp.Error](err)
	if ok && (refused.Code() == twirp.Unauthenticated || refused.Code() == twirp.PermissionDenied) {
		return errKey
	}
	return err
}

// clock says how far LiveKit's is ahead of ours.
func clock(ctx context.Context, address string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
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

// mayJoin asks LiveKit whether it would take a participant's token. It returns errNoRoom where the room is not there and not made.
func mayJoin(ctx context.Context, cfg Config, room string) error {
	if room == "" {
		room = "check"
	}
	token, err := auth.NewAccessToken(cfg.Key, cfg.Secret).SetIdentity("check").SetValidFor(agentTTL).
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: room}).ToJWT()
	if err != nil {
		return errors.New("a token cannot be made")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(httpURL(cfg.URL), "/")+"/rtc/validate?"+url.Values{"access_token": {token}}.Encode(), nil)
	if err != nil {
		return errors.New("the address is none")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.New("LiveKit does not answer")
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return errNoRoom
	}
	return fmt.Errorf("LiveKit answers %d to one who would join", resp.StatusCode)
}

// agentIn says whether an agent is in a room, and what to do if not.
func agentIn(ctx context.Context, api *lksdk.RoomServiceClient, agent, room string) (says, do string) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	in, err := api.ListParticipants(ctx, &livekit.ListParticipantsRequest{Room: room})
	switch {
	case err != nil:
		return "LiveKit does not say", "Look into the server's log."
	case len(in.GetParticipants()) == 0 && agent != "":
		return "nobody is in that room now", "It begins when somebody joins it. The agent " + agent + " follows where LiveKit is asked to dispatch it, as agent in vela.yaml has it."
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
