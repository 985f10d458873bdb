package gateway

import (
	"context"
	"iter"
	"os"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
)

// missing makes an agent that only says what it lacks.
func (a *made) missing(why error) {
	a.engine = absent{why}
	a.probe = func(context.Context) error { return why }
}

// absent is an agent that cannot be asked.
type absent struct{ why error }

// Run implements [turn.Engine].
func (a absent) Run(ctx context.Context, _ turn.Request) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		if ctx.Err() == nil {
			yield(nil, a.why)
		}
	}
}

// notThere says why an agent is not there, in words for everybody.
type notThere string

func (n notThere) Error() string     { return string(n) }
func (notThere) Code() protocol.Code { return protocol.CodeAgentUnavailable }

// errNoKey does not name the variable: what stands in the file may be a key by mistake.
const errNoKey notThere = "An environment variable that vela.yaml names for a key is not set. Set it and start the gateway again."

// secret is what an environment variable holds; none is asked for with an empty name.
func secret(variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	if value := os.Getenv(variable); value != "" {
		return value, nil
	}
	return "", errNoKey
}
