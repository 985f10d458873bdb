package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"strings"

	"nhooyr.io/websocket"
)

// What stands around a piece of text when Vela sends it: the frames of both are of one size.
const (
	opening = `{"type":"response.text.delta","payload":{"text":"`
	closing = `","responseId":"r1"},"seq":100,"ts":1766318400123}`
)

// fan answers with a frame for each piece of text that the model says. It copies what stands in quotes behind "content"
// and looks at nothing else.
func fan(url string) func(context.Context, *websocket.Conn) error {
	content := []byte(`"content":"`)
	return func(ctx context.Context, conn *websocket.Conn) error {
		resp, err := http.Post(url, "application/json", strings.NewReader(`{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}`))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		frame := []byte(opening)
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return err // io.EOF as well: an answer a connection is enough
			}
			_, line, found := bytes.Cut(line, content)
			end := bytes.IndexByte(line, '"')
			if !found || end <= 0 {
				continue
			}
			frame = append(append(frame[:len(opening)], line[:end]...), closing...)
			if err := conn.Write(ctx, websocket.MessageText, frame); err != nil {
				return err
			}
		}
	}
}
