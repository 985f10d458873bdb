package room

import (
	"testing"

	"github.com/livekit/protocol/livekit"
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
