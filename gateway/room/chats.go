package room

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The bounds of what people write on lk.chat. The SDK keeps all that comes of a stream until it ends: one that is past a
// bound is ended here, and what comes of it later is passed over.
const (
	maxChats    = 16       // texts that may be coming in at once
	maxChatsOf  = 4        // of one participant
	maxText     = 64 << 10 // bytes of one
	maxTextTime = 10 * time.Second
)

// chats are the texts that are coming in. The lock guards the counts.
type chats struct {
	end func(stream string) // has the SDK forget a stream: what is read of it ends

	mu   sync.Mutex
	open int
	of   map[string]int // by identity
}

func newChats(end func(stream string)) *chats { return &chats{end: end, of: map[string]int{}} }

// read reads a text to its end, and returns it without the spaces around; nothing where it is past a bound.
func (c *chats) read(ctx context.Context, stream, identity string, text io.Reader) string {
	if !c.enter(identity) {
		c.end(stream)
		return ""
	}
	defer c.leave(identity)
	ctx, cancel := context.WithTimeout(ctx, maxTextTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.end(stream) })
	said, err := io.ReadAll(io.LimitReader(text, maxText+1))
	switch {
	case !stop():
		return "" // it was ended before its end
	case err != nil, len(said) > maxText, !utf8.Valid(said):
		c.end(stream)
		return ""
	}
	return strings.TrimSpace(string(said))
}

func (c *chats) enter(identity string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= maxChats || c.of[identity] >= maxChatsOf {
		return false
	}
	c.open++
	c.of[identity]++
	return true
}

func (c *chats) leave(identity string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.of[identity]--; c.of[identity] == 0 {
		delete(c.of, identity)
	}
}
