package source

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/anthropic"
	"vela/turn/openai"
	"vela/turn/stream"
)

// Times of a model server.
const (
	openAITime    = 3 * time.Second // for its list of models
	anthropicTime = 5 * time.Second
	checkEvery    = time.Minute // whether it is still there
	mayMiss       = 2           // checks in a row: a server that answers somebody may be slow
)

// vendor is a model as it is asked, and the list of those there are.
type vendor interface {
	agent.Model
	Models(ctx context.Context) ([]string, error)
	Close()
}

// errNoModels comes from an address behind which no models can be.
var errNoModels = fault{"This address is none of a model server: it has a query.", true}

// vendor makes a client for one model of a source; for any, where only the list of them is wanted.
func (s *Sources) vendor(p Protocol, address, key, model string) (vendor, error) {
	u, err := url.Parse(address)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errNoModels
	}
	base := strings.TrimSuffix(strings.TrimRight(address, "/"), "/v1")
	if p == Anthropic {
		if key == "" {
			return nil, fault{"Anthropic wants a key. Set it first.", true}
		}
		if model == "" {
			model = "any"
		}
		return anthropic.New(anthropic.Config{BaseURL: base, Key: key, Model: model, AgentID: model, Dial: s.cfg.dial, Retries: -1})
	}
	return openai.New(openai.Config{BaseURL: base + "/v1", Key: key, Model: model, AgentID: model, Dial: s.cfg.dial, Retries: -1})
}

// server is a connection to a model server, which says nothing unless it is asked, and is only looked after.
type server struct {
	vendor vendor
	check  func(ctx context.Context) ([]string, error)
}

// models asks a server for its models. The error is that of no such server, or of one that cannot be asked.
func (d *dialer) models(ctx context.Context, s Source, p Protocol, key string) (Feed, error) {
	v, err := d.sources.vendor(p, s.URL, key, "")
	if err != nil {
		return nil, err
	}
	f := server{v, func(ctx context.Context) ([]string, error) { return listOf(ctx, p, v) }}
	names, err := f.check(ctx)
	if err != nil {
		v.Close()
		return nil, err
	}
	d.upgrade(p, names)
	return f, nil
}

// listOf lists a server's models. Servers that speak Anthropic's language need not have a list: then it is empty.
func listOf(ctx context.Context, p Protocol, v vendor) ([]string, error) {
	within := openAITime
	if p == Anthropic {
		within = anthropicTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	names, err := v.Models(ctx)
	if err == nil {
		return names, nil
	}
	var e *stream.Error
	if !errors.As(err, &e) {
		return nil, allowed(err)
	}
	switch e.Status() {
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, refusedBy(e.Status())
	case 0:
		if p == Anthropic && e.Code() == protocol.CodeAgentFailed {
			return nil, nil
		}
		if strings.Contains(stream.Operator(err), string(ErrForbidden)) { // all that is left of it
			return nil, fault{string(ErrForbidden), true}
		}
		return nil, fault{words: "The model server cannot be reached."}
	}
	if p == Anthropic {
		return nil, nil
	}
	return nil, refusedBy(e.Status())
}

// Next implements [Conn]: there is never a message.
func (s server) Next(ctx context.Context) ([]byte, error) {
	for missed := 0; ; {
		if !pause(ctx, checkEvery) {
			return nil, context.Cause(ctx)
		}
		_, err := s.check(ctx)
		if err == nil {
			missed = 0
			continue
		}
		if missed++; missed == mayMiss || ctx.Err() != nil {
			return nil, err
		}
	}
}

// Parse implements [Feed].
func (server) Parse([]byte) []signal.Raw { return nil }

// Close implements [Conn].
func (s server) Close() error {
	s.vendor.Close()
	return nil
}

// answer asks a source's model, and takes what it answers. What it returns says why there is no whole answer; nothing if
// there is, or nobody wants it any more.
func (c *child) answer(ctx context.Context, s Source, key, id, text string) (failure string) {
	v, err := c.sources.vendor(s.Protocol, s.URL, key, s.Model)
	if err != nil {
		return err.Error() // which is a fault
	}
	defer v.Close()
	var failed error
	answer := v.Stream(ctx, agent.Prompt{Messages: []agent.Message{{Role: turn.User, Text: text}}})
	x := Exchange{Stamp: c.sources.stamp, Protocol: s.Protocol, Model: s.Model, ID: id}
	for r := range x.Signals(ctx, text, noting(&failed, answer)) {
		if c.gate.await(ctx) != nil {
			break
		}
		c.take(r)
	}
	if failed == nil || ctx.Err() != nil {
		return ""
	}
	return x.failure(failed).Message
}

// noting passes an answer on, and notes its error.
func noting(failed *error, answer iter.Seq2[signal.Payload, error]) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		for p, err := range answer {
			if err != nil {
				*failed = err
			}
			if !yield(p, err) {
				return
			}
		}
	}
}
