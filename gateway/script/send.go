package script

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"vela/gateway/client"
	"vela/protocol"
	"vela/session/speech"
)

// send parses what follows a >: a blank and the text, or a word and its arguments.
func (p *parser) send(name, rest string) (action, error) {
	if text, ok := strings.CutPrefix(rest, " "); ok && text != "" {
		return sendText(name, text, 1), nil
	}
	word, argument, _ := strings.Cut(rest, " ")
	switch word {
	case "":
		return nil, errors.New("> sends nothing: write the text after it, or >empty for an empty message")
	case "empty":
		return bare(">empty", strings.Fields(argument), sendText(name, "", 1))
	case "binary":
		return p.parseBinary(name, argument)
	case "repeat":
		return parseRepeat(name, argument)
	case "size":
		return parseSize(name, argument)
	case "frame":
		return parseFrame(name, argument)
	case "wav":
		return p.parseWAV(name, argument)
	}
	return nil, fmt.Errorf(">%s is no way to send: write > and a blank before a text, or one of >empty, >binary, >repeat, >size, >frame, >wav", word)
}

// sendText sends a text message so many times.
func sendText(name, text string, times int) action {
	return func(ctx context.Context, p *player) error {
		for range times {
			if err := p.send(ctx, name, func(ctx context.Context, c *conn) error { return c.client.SendRaw(ctx, []byte(text)) }); err != nil {
				return err
			}
			p.note(name, "> "+text)
		}
		return nil
	}
}

// parseBinary reads bytes in hexadecimal, or the name of a WAV file.
func (p *parser) parseBinary(name, argument string) (action, error) {
	if file, how, _ := strings.Cut(argument, " "); strings.HasSuffix(file, ".wav") && (how == "" || how == "fast") {
		return sendWAV(name, p.beside(file), sendPCM, how == "fast"), nil
	}
	data, err := hex.DecodeString(strings.ReplaceAll(argument, " ", ""))
	if err != nil {
		return nil, fmt.Errorf("%q is not hexadecimal: write >binary 00ff10, or >binary hello.wav", argument)
	}
	return func(ctx context.Context, p *player) error {
		p.note(name, ">binary "+argument)
		return p.send(ctx, name, func(ctx context.Context, c *conn) error { return c.client.SendBinary(ctx, data) })
	}, nil
}

// maxRepeat bounds how often a line sends its text.
const maxRepeat = 100_000

func parseRepeat(name, argument string) (action, error) {
	count, text, ok := strings.Cut(argument, " ")
	n, err := strconv.Atoi(count)
	if err != nil || !ok || text == "" || n < 1 || n > maxRepeat {
		return nil, fmt.Errorf("a number up to %d and a text must follow >repeat: write >repeat 5 {\"type\":\"session.start\",\"payload\":{}}", maxRepeat)
	}
	return sendText(name, text, n), nil
}

// A message of a given size is a session.start with a field that nobody knows.
const (
	padBefore = `{"type":"session.start","payload":{},"padding":"`
	padAfter  = `"}`
	maxSize   = 64 << 20
)

func parseSize(name, argument string) (action, error) {
	n, err := strconv.Atoi(argument)
	if err != nil || n < len(padBefore+padAfter) || n > maxSize {
		return nil, fmt.Errorf("%q is no size between %d and %d bytes: write >size 1048577", argument, len(padBefore+padAfter), maxSize)
	}
	return func(ctx context.Context, p *player) error {
		message := padBefore + strings.Repeat("x", n-len(padBefore+padAfter)) + padAfter
		return p.onWire(name, fmt.Sprintf(">size %d", n), textFrame(message))
	}, nil
}

// parseFrame reads bytes in hexadecimal and text in single quotes.
func parseFrame(name, argument string) (action, error) {
	data, err := wireBytes(argument)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, p *player) error { return p.onWire(name, ">frame "+argument, data) }, nil
}

func (p *parser) parseWAV(name, argument string) (action, error) {
	words := strings.Fields(argument)
	if len(words) == 0 || len(words) > 2 || len(words) == 2 && words[1] != "fast" {
		return nil, errors.New("a file must follow >wav: write >wav hello.wav, or >wav hello.wav fast")
	}
	return sendWAV(name, p.beside(words[0]), sendJSON, len(words) == 2), nil
}

// sendJSON sends a piece of speech as an event, sendPCM as a binary message.
func sendJSON(ctx context.Context, c *client.Client, pcm []byte) error {
	return c.Send(ctx, protocol.InputAudioAppend{Chunk: base64.StdEncoding.EncodeToString(pcm)})
}

func sendPCM(ctx context.Context, c *client.Client, pcm []byte) error { return c.SendBinary(ctx, pcm) }

// sendWAV takes as long as the speech lasts, unless fast.
func sendWAV(name, path string, send func(context.Context, *client.Client, []byte) error, fast bool) action {
	return func(ctx context.Context, p *player) error {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("the WAV file cannot be opened: %w", err)
		}
		defer file.Close()
		samples, err := client.ReadSpeech(file)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		p.note(name, ">wav "+filepath.Base(path))
		c, err := p.conn(name)
		if err != nil {
			return err
		}
		return client.Speak(ctx, samples, fast, func(ctx context.Context, chunk []int16) error {
			return send(ctx, c.client, speech.Bytes(chunk))
		})
	}
}
