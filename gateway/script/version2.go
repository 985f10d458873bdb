package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"vela/gateway/client"
	"vela/protocol"
)

// count holds the events of one connection of version 2 to their numbers: none is left out and none comes twice, and
// who has a number has a time. Every expectation does this by itself.
type count struct {
	begun bool
	after uint64 // what the connection resumed after
	last  uint64
}

// add takes the next message.
func (c *count) add(raw client.Raw) error {
	var e struct {
		Type    string
		Seq, TS *uint64
		Payload json.RawMessage
	}
	if raw.Binary || json.Unmarshal(raw.Data, &e) != nil {
		return nil // what it is, the expectation says
	}
	switch {
	case (e.Seq == nil) != (e.TS == nil):
		return errors.New("a message with one of seq and ts, and not the other: " + short(string(raw.Data)))
	case e.Seq == nil && e.Type == "session.ready":
		return c.ready(e.Payload)
	case e.Seq == nil:
		return nil
	case *e.Seq != c.last+1:
		return fmt.Errorf("event %d, where %d comes next: %s", *e.Seq, c.last+1, short(string(raw.Data)))
	}
	c.last++
	return nil
}

// ready counts from where the session says that it is.
func (c *count) ready(payload json.RawMessage) error {
	var r struct {
		Recovered bool
		LastSeq   uint64
	}
	_ = json.Unmarshal(payload, &r) // what is wrong with it, the expectation says
	if c.begun && r.LastSeq != c.last {
		return fmt.Errorf("session.ready says that event %d was the last; it was %d", r.LastSeq, c.last)
	}
	c.begun, c.last = true, r.LastSeq
	if r.Recovered {
		c.last = c.after
	}
	return nil
}

const howToResume = "write resume token=t after=n, where t and n are names that an expectation gave with <t:text> and <n:number>; after may be a number, and as b may come first"

// resume parses the step and makes the connection known.
func (p *parser) resume(words []string) (action, error) {
	name, token, after := "", "", ""
	for i := 0; i < len(words); i++ {
		key, value, _ := strings.Cut(words[i], "=")
		switch {
		case words[i] == "as" && i+1 < len(words):
			i++
			name = words[i]
		case key == "token" && value != "":
			token = value
		case key == "after" && value != "":
			after = value
		default:
			return nil, fmt.Errorf("%q is no option of resume: %s", words[i], howToResume)
		}
	}
	if token == "" || after == "" {
		return nil, errors.New("resume what? " + howToResume)
	}
	options := []string{"protocol=" + client.Version2}
	if name != "" {
		options = append(options, "as", name)
	}
	open, err := p.connect(options)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, p *player) error {
		t, ok := p.bound[token].(string)
		if !ok {
			return fmt.Errorf("nothing was called %s before that is a text: %s", token, howToResume)
		}
		n, err := p.number(after)
		if err != nil {
			return err
		}
		if err := open(ctx, p); err != nil {
			return err
		}
		k := p.conns[name]
		if k.count == nil {
			return fmt.Errorf("expected  a connection of version 2\ngot       %q", k.client.Subprotocol())
		}
		p.note(name, fmt.Sprintf("> session.resume after %d", n))
		return p.send(ctx, name, func(ctx context.Context, k *conn) error {
			k.count.after = n
			return k.client.Send(ctx, protocol.SessionResume{Token: t, After: n})
		})
	}, nil
}

// number is a number as it stands in a script, or the one of that name.
func (p *player) number(word string) (uint64, error) {
	text := word
	if n, ok := p.bound[word].(json.Number); ok {
		text = n.String()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is neither a whole number nor the name of one: %s", word, howToResume)
	}
	return n, nil
}

// parsePass parses what may come at any place from here on.
func parsePass(text string) (action, error) {
	pattern, err := parsePattern(text)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, p *player) error {
		p.pass = append(p.pass, pattern)
		return nil
	}, nil
}
