package room

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/livekit/protocol/livekit"
)

// The bounds of what people write on lk.chat.
const (
	maxChats    = 16       // texts that may be coming in at once
	maxChatsOf  = 4        // of one participant
	maxText     = 64 << 10 // bytes of one
	maxTextTime = 10 * time.Second
)

// chats are the texts that are coming in, as text streams: a header, chunks, and a trailer. They are ours, because the SDK
// keeps all that comes of a stream however long it is, and panics at a trailer with attributes behind a header without
// (v2.18.1). They belong to one data channel: its packets come one after the other.
type chats struct {
	texts map[string]*text // by the stream's id
}

type text struct {
	from string
	said strings.Builder
	late time.Time
}

// begin takes a header. A text for which there is no place is not read.
func (c *chats) begin(from string, h *livekit.DataStream_Header) {
	if h.GetTopic() != topicChat || h.GetTextHeader() == nil {
		return
	}
	of := 0
	for id, t := range c.texts {
		if time.Now().After(t.late) {
			delete(c.texts, id) // nobody ends it any more
		} else if t.from == from {
			of++
		}
	}
	if len(c.texts) >= maxChats || of >= maxChatsOf || c.texts[h.GetStreamId()] != nil {
		return
	}
	if c.texts == nil {
		c.texts = map[string]*text{}
	}
	c.texts[h.GetStreamId()] = &text{from: from, late: time.Now().Add(maxTextTime)}
}

// add takes a chunk. What is too long, or somebody else's, is not read.
func (c *chats) add(from string, chunk *livekit.DataStream_Chunk) {
	t := c.texts[chunk.GetStreamId()]
	if t == nil || t.from != from {
		return
	}
	if t.said.Len()+len(chunk.GetContent()) > maxText {
		delete(c.texts, chunk.GetStreamId())
		return
	}
	t.said.Write(chunk.GetContent())
}

// end takes a trailer, and returns the text without the spaces around; nothing where there is none.
func (c *chats) end(from string, trailer *livekit.DataStream_Trailer) string {
	t := c.texts[trailer.GetStreamId()]
	if t == nil || t.from != from {
		return ""
	}
	delete(c.texts, trailer.GetStreamId())
	if said := t.said.String(); utf8.ValidString(said) && !time.Now().After(t.late) {
		return strings.TrimSpace(said)
	}
	return ""
}
