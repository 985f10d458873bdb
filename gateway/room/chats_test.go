package room

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livekit/protocol/livekit"
)

func begins(stream string) *livekit.DataStream_Header {
	return &livekit.DataStream_Header{StreamId: stream, Topic: topicChat, ContentHeader: &livekit.DataStream_Header_TextHeader{TextHeader: &livekit.DataStream_TextHeader{}}}
}

func goesOn(stream, text string) *livekit.DataStream_Chunk {
	return &livekit.DataStream_Chunk{StreamId: stream, Content: []byte(text)}
}

func ends(stream string) *livekit.DataStream_Trailer {
	return &livekit.DataStream_Trailer{StreamId: stream, Attributes: map[string]string{"any": "thing"}}
}

func TestChats(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"a text":         {[]string{" hel", "lo\n"}, "hello"},
		"half a letter":  {[]string{"\xc3", "\xa4"}, "ä"},
		"nothing":        {[]string{"  "}, ""},
		"no pieces":      {nil, ""},
		"as much as may": {[]string{strings.Repeat("x", maxText)}, strings.Repeat("x", maxText)},
		"too much":       {[]string{strings.Repeat("x", maxText), "x"}, ""},
		"no text":        {[]string{"a\xff"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said chats
			said.begin("ann", begins("s"))
			for _, p := range c.pieces {
				said.add("ann", goesOn("s", p))
			}
			if got := said.end("ann", ends("s")); got != c.want {
				t.Errorf("%.20q, want %.20q", got, c.want)
			}
			if got := said.end("ann", ends("s")); got != "" || len(said.texts) != 0 {
				t.Errorf("once more: %q, and %d are kept", got, len(said.texts))
			}
		})
	}
}

// Nobody adds to what another one says, or ends it; and what is no text for us is not read.
func TestWhoseTextItIs(t *testing.T) {
	var said chats
	said.begin("ann", begins("s"))
	said.begin("bob", begins("s"))
	said.add("ann", goesOn("s", "hello"))
	said.add("bob", goesOn("s", " you fool"))
	if got := said.end("bob", ends("s")); got != "" {
		t.Errorf("bob ended it with %q", got)
	}
	if got := said.end("ann", ends("s")); got != "hello" {
		t.Errorf("ann said %q", got)
	}
	other := begins("o")
	other.Topic = "other"
	file := begins("f")
	file.ContentHeader = &livekit.DataStream_Header_ByteHeader{ByteHeader: &livekit.DataStream_ByteHeader{}}
	said.begin("ann", other)
	said.begin("ann", file)
	if len(said.texts) != 0 {
		t.Errorf("%d are read", len(said.texts))
	}
}

// A text without an end keeps its place for a while; nobody takes all of them, and there are so many.
func TestTextsThatNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said chats
		for n := range maxChatsOf + 3 {
			said.begin("ann", begins(fmt.Sprint("ann ", n)))
		}
		if len(said.texts) != maxChatsOf {
			t.Errorf("%d of ann's", len(said.texts))
		}
		for n := range 2 * maxChats {
			said.begin(fmt.Sprint("guest ", n), begins(fmt.Sprint("guest ", n)))
		}
		if len(said.texts) != maxChats {
			t.Errorf("%d in all", len(said.texts))
		}
		said.add("ann", goesOn("ann 0", "late"))
		time.Sleep(maxTextTime + 1)
		if got := said.end("ann", ends("ann 0")); got != "" {
			t.Errorf("it was said late: %q", got)
		}
		said.begin("ann", begins("new"))
		if len(said.texts) != 1 {
			t.Errorf("%d are kept", len(said.texts))
		}
	})
}
