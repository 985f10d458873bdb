package openclaw

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"time"

	"vela/protocol/signal"
	"vela/turn"
)

// EngineConfig says which of OpenClaw's agents answers, and in which of its sessions. The zero value is its main agent.
type EngineConfig struct {
	Agent    string // OpenClaw's name of it; "main" by default
	Prefix   string // of the session in a session key, before Vela's session id; "vela-" by default
	Thinking string // level, such as "low"; empty leaves it to OpenClaw
}

// Engine answers turns with an agent of OpenClaw's. A session of Vela is a session of OpenClaw's of its own, whose key is
// agent:AGENT:PREFIX followed by the id.
type Engine struct {
	client *Client
	cfg    EngineConfig
}

// Shapes of the names that make up a session key.
var (
	agentName  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	prefixName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
)

// NewEngine checks the configuration. The client may be shared by several engines; the engine works while it runs.
func NewEngine(client *Client, cfg EngineConfig) (*Engine, error) {
	if cfg.Agent == "" {
		cfg.Agent = "main"
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "vela-"
	}
	if !agentName.MatchString(cfg.Agent) {
		return nil, fmt.Errorf("openclaw: agent %q: use lower-case letters, digits, _ and -", cfg.Agent)
	}
	if !prefixName.MatchString(cfg.Prefix) {
		return nil, fmt.Errorf("openclaw: session prefix %q: use lower-case letters, digits, _ and -", cfg.Prefix)
	}
	return &Engine{client, cfg}, nil
}

// Run implements [turn.Engine]. A turn that is cancelled, or that nobody listens to any more, is stopped at OpenClaw too,
// in the background.
func (e *Engine) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		if ctx.Err() != nil {
			return
		}
		r := newRun("agent:"+e.cfg.Agent+":"+e.cfg.Prefix+req.SessionID, req.Text, e.cfg.Thinking)
		if err := e.client.ask(ctx, r); err != nil {
			if ctx.Err() == nil {
				yield(nil, err)
			}
			return
		}
		defer e.client.leave(r)
		e.follow(ctx, r, yield)
	}
}

// follow yields what the run says until it ends.
func (e *Engine) follow(ctx context.Context, r *run, yield func(signal.Payload, error) bool) {
	late, timer := errNotTaken, time.NewTimer(e.client.cfg.ConnectWithin)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			yield(nil, late)
			return
		case s := <-r.out:
			if ctx.Err() != nil {
				return
			}
			switch {
			case s.payload != nil:
				if !e.pass(r, s, yield) {
					return
				}
			case s.heard:
				timer.Stop()
			default:
				late = errNoSign
				timer.Reset(e.client.cfg.AnswerWithin)
			}
		case <-r.failed:
			e.rest(ctx, r, yield)
			return
		}
	}
}

// pass yields one payload; false when it was the last.
func (e *Engine) pass(r *run, s sign, yield func(signal.Payload, error) bool) bool {
	r.queued.Add(-s.size)
	switch p := s.payload.(type) {
	case signal.Error:
		yield(nil, runFailure(p.Code, errors.New("openclaw: run failed: "+shorten(p.Message))))
		return false
	case signal.Completion:
		if !p.Success {
			yield(nil, errStopped)
			return false
		}
		yield(p, nil)
		return false
	}
	return yield(s.payload, nil)
}

// rest yields what came before a run failed, and then why.
func (e *Engine) rest(ctx context.Context, r *run, yield func(signal.Payload, error) bool) {
	for {
		select {
		case s := <-r.out:
			if ctx.Err() != nil || s.payload != nil && !e.pass(r, s, yield) {
				return
			}
		default:
			if ctx.Err() == nil {
				yield(nil, r.err)
			}
			return
		}
	}
}
