package room

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"google.golang.org/protobuf/proto"
)

// listeningTo is a connection that takes packets, and the room that they go to.
func listeningTo(t testing.TB) (*connection, *Room) {
	r := &Room{in: make(chan input, inputs)}
	return &connection{from: r, ctx: t.Context()}, r
}

func sent(t testing.TB, from string, p *livekit.DataPacket) []byte {
	t.Helper()
	p.ParticipantIdentity = from
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What participants send comes as what it is: also a text whose trailer has attributes, where its header has none.
func TestPackets(t *testing.T) {
	c, r := listeningTo(t)
	said := new(chats)
	for _, p := range []*livekit.DataPacket{
		user(topicEvents, []byte(`{"type":"tts-mode"}`)),
		user("other", []byte(`{}`)),
		{Value: &livekit.DataPacket_StreamHeader{StreamHeader: begins("s")}},
		{Value: &livekit.DataPacket_StreamChunk{StreamChunk: goesOn("s", "hello")}},
		{Value: &livekit.DataPacket_StreamTrailer{StreamTrailer: ends("s")}},
		{Value: &livekit.DataPacket_StreamTrailer{StreamTrailer: ends("nobody's")}},
	} {
		c.packet(said, sent(t, "ann", p))
		c.packet(said, sent(t, "", p)) // nobody's
	}
	first, second := (<-r.in).(command), (<-r.in).(typed)
	if first.identity != "ann" || string(first.object) != `{"type":"tts-mode"}` || second != (typed{"ann", "hello"}) || len(r.in) != 0 {
		t.Errorf("%+v, %+v, and %d more", first, second, len(r.in))
	}
}

// The SDK drops what is too big and says nothing: it is not given that.
func TestWhatLiveKitDoesNotCarry(t *testing.T) {
	c, _ := listeningTo(t)
	if err := c.carry(t.Context(), user(topicEvents, make([]byte, maxPacket))); err != errTooBig {
		t.Error(err)
	}
}

// Why a room could not be joined, as the SDK says it of what LiveKit answers.
func TestWhyARoomIsNotJoined(t *testing.T) {
	quiet()
	for status, want := range map[int]error{http.StatusUnauthorized: errKey, http.StatusNotFound: errNoRoom, http.StatusBadGateway: errUnreachable} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, map[int]string{401: "invalid token", 404: "requested room does not exist", 502: "bad gateway"}[status], status)
		}))
		cfg := Config{URL: strings.Replace(server.URL, "http", "ws", 1), Key: "key", Secret: "secret-secret-secret-secret-secret"}
		url, token, err := New(cfg).Token("hall", "ann", "", "", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = lksdk.NewRoom(nil).JoinWithContextAndToken(t.Context(), url, token, lksdk.WithConnectTimeout(connectTime), lksdk.WithDisableRegionDiscovery())
		server.Close()
		if err == nil {
			t.Fatalf("%d: joined", status)
		}
		if got := joinError(err); got != want || strings.Contains(got.Error(), token) {
			t.Errorf("%d: %v", status, got)
		}
	}
	if err := joinError(fmt.Errorf("join: %w", context.Canceled)); err != context.Canceled {
		t.Error(err)
	}
}

func FuzzPacket(f *testing.F) {
	f.Add(sent(f, "ann", user(topicEvents, []byte(`{}`))))
	f.Add(sent(f, "ann", &livekit.DataPacket{Value: &livekit.DataPacket_StreamHeader{StreamHeader: begins("s")}}))
	f.Add(sent(f, "ann", &livekit.DataPacket{Value: &livekit.DataPacket_StreamTrailer{StreamTrailer: ends("s")}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p livekit.DataPacket
		if proto.Unmarshal(b, &p) == nil && p.GetRpcRequest() != nil {
			return // it goes to the SDK
		}
		c, _ := listeningTo(t)
		said := new(chats)
		said.begin("ann", begins("s"))
		c.packet(said, b)
		c.packet(said, b)
	})
}
