package room

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hall is chats whose streams are pipes: ending one is what the SDK does.
type hall struct {
	*chats
	mu    sync.Mutex
	pipes map[string]*io.PipeWriter
	ended []string
	said  []string
	wg    sync.WaitGroup
}

func newHall() *hall {
	h := &hall{pipes: map[string]*io.PipeWriter{}}
	h.chats = newChats(func(stream string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = append(h.ended, stream)
		h.pipes[stream].Close()
	})
	return h
}

// begins is a text that somebody begins to write.
func (h *hall) begins(t *testing.T, stream, identity string) *io.PipeWriter {
	r, w := io.Pipe()
	h.mu.Lock()
	h.pipes[stream] = w
	h.mu.Unlock()
	h.wg.Go(func() {
		said := h.read(t.Context(), stream, identity, r)
		r.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.said = append(h.said, said)
	})
	return w
}

func write(w *io.PipeWriter, text string) { _, _ = io.WriteString(w, text) } // one that was ended takes nothing

func TestChats(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a text":         {" hello\n", "hello"},
		"nothing":        {"  ", ""},
		"as much as may": {strings.Repeat("x", maxText), strings.Repeat("x", maxText)},
		"too much":       {strings.Repeat("x", maxText+1), ""},
		"no text":        {"a\xff", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHall()
				w := h.begins(t, "s", "ann")
				write(w, c.text)
				w.Close()
				h.wg.Wait()
				if h.said[0] != c.want {
					t.Errorf("%.20q, want %.20q", h.said[0], c.want)
				}
			})
		})
	}
}

// A text without an end is ended, and takes nobody's place for longer than that; nobody takes all of them.
func TestTextsThatNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall()
		for n := range maxChatsOf + 1 {
			h.begins(t, fmt.Sprint("ann ", n), "ann")
			synctest.Wait()
		}
		if !slices.Equal(h.ended, []string{fmt.Sprint("ann ", maxChatsOf)}) {
			t.Fatalf("ended: %v", h.ended)
		}
		bobs := h.begins(t, "bob", "bob")
		write(bobs, "hello")
		bobs.Close()
		synctest.Wait()
		if !slices.Contains(h.said, "hello") {
			t.Errorf("bob is not read: %v", h.said)
		}
		for n := range maxChats {
			h.begins(t, fmt.Sprint("guest ", n), fmt.Sprint("guest ", n))
		}
		synctest.Wait()
		if got := len(h.ended); got != 1+maxChatsOf {
			t.Errorf("%d are ended, of so many more than may be", got)
		}
		time.Sleep(maxTextTime)
		h.wg.Wait()
		if h.open != 0 || len(h.of) != 0 {
			t.Errorf("%d are still read, of %v", h.open, h.of)
		}
		if slices.ContainsFunc(h.said, func(s string) bool { return s != "" && s != "hello" }) {
			t.Errorf("said: %v", h.said)
		}
	})
}
