// Package agent is the tool loop, once: a [Model] and tools make a [turn.Engine].
//
//	a, err := agent.New(agent.Config{ID: "vela", Model: model, Tools: tools})
//
// Start at [Agent.Run]. A turn is rounds: the model is given a prompt and answers; what it calls is run, and the results
// make the next prompt, until it answers in words alone. loop.go is that, act.go runs the tools of one round,
// conversation.go makes messages of a history, budget.go cuts them to what the model takes, and words.go is what we say
// to the model ourselves.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/tool"
)

// Config is what makes an agent. ID and Model are required; the rest has defaults.
type Config struct {
	ID     string      // who the signals say they are from
	Model  Model       // what answers
	Tools  tool.Caller // what it may do; nil: nothing. It is asked for its definitions in every round
	Rules  tool.Rules  // which of them need a yes, which is asked through the request's Ask
	System string      // the system prompt; empty: one for an agent that is spoken with

	MaxRounds   int           // of tools in one turn; default 12. Then the model has to answer without them
	MaxTime     time.Duration // of one turn, waiting for a yes included; default 5 minutes
	MaxParallel int           // tools that run at once in one turn; default 8
	MaxResult   int           // bytes of one tool result that the model is shown; default 72 KiB

	// Budget is how large the messages of a prompt may be, in tokens as budget.go estimates them; default 24,000. The
	// system prompt and the definitions of tools are not part of it.
	Budget int

	Log *slog.Logger // nil discards
}

// Agent is a [turn.Engine]: a model that may use tools. Make it with [New].
type Agent struct{ cfg Config }

// New makes an agent. It returns an error for a Config that lacks something, has a negative bound, or has rules that are
// none.
func New(cfg Config) (*Agent, error) {
	switch {
	case cfg.ID == "":
		return nil, errors.New("agent: no ID")
	case cfg.Model == nil:
		return nil, errors.New("agent: no Model")
	case cfg.MaxRounds < 0 || cfg.MaxTime < 0 || cfg.MaxParallel < 0 || cfg.MaxResult < 0 || cfg.Budget < 0:
		return nil, errors.New("agent: a bound is negative")
	}
	if err := cfg.Rules.Validate(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	if cfg.Tools == nil {
		cfg.Tools = tool.Join()
	}
	cfg.System = cmp.Or(cfg.System, spoken)
	cfg.MaxRounds = cmp.Or(cfg.MaxRounds, 12)
	cfg.MaxTime = cmp.Or(cfg.MaxTime, 5*time.Minute)
	cfg.MaxParallel = cmp.Or(cfg.MaxParallel, 8)
	cfg.MaxResult = cmp.Or(cfg.MaxResult, 72<<10) // all that read_file gives at once, and what it says of the rest
	cfg.Budget = cmp.Or(cfg.Budget, 24_000)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("agent", cfg.ID)
	return &Agent{cfg}, nil
}

// Run implements [turn.Engine]. The states that it tells are idle → thinking → acting → thinking → … → done, or error
// in the last one's place, with what a client is told as the reason. An error of the model is passed on as it is.
func (a *Agent) Run(ctx context.Context, req turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		timed, stop := context.WithTimeoutCause(ctx, a.cfg.MaxTime, errTimeout)
		defer stop()
		t := a.begin(req, yield)
		t.end(ctx, t.answer(timed))
	}
}

// failure is an error with a code of its own. Its words are a client's.
type failure struct {
	code  protocol.Code
	words string
}

func (f *failure) Error() string       { return f.words }
func (f *failure) Code() protocol.Code { return f.code }

var (
	errTimeout  = &failure{protocol.CodeAgentTimeout, "The agent worked on this for too long. Ask again, or for less at a time."}
	errNoAnswer = &failure{protocol.CodeAgentFailed, "The agent gave no answer."}
)

// errLeft ends a turn whose reader has left the loop: there is nobody to tell.
var errLeft = errors.New("agent: the reader left")
