package openclaw

import (
	"errors"

	"vela/protocol"
)

// failure is an error that a client is told of in its own words. They name no host, path or token: what only whoever runs
// Vela should see is the cause, for the log.
type failure struct {
	code  protocol.Code
	words string
	cause error // may be nil
	lasts bool  // of a connection: trying again by itself would not help
}

func (f *failure) Error() string       { return f.words }
func (f *failure) Code() protocol.Code { return f.code }
func (f *failure) Unwrap() error       { return f.cause }

// Refused says, of a connection that did not come about, that trying again does not mend it.
func (f *failure) Refused() bool { return f.lasts }

// because is the failure with its cause.
func (f *failure) because(cause error) *failure {
	g := *f
	g.cause = cause
	return &g
}

// logged is what a log is told of an error.
func logged(err error) error {
	if f := (*failure)(nil); errors.As(err, &f) && f.cause != nil {
		return f.cause
	}
	return err
}

// What keeps the connection away.
var (
	errSilent    = &failure{code: protocol.CodeAgentUnavailable, words: "OpenClaw does not answer. Whoever runs this gateway: is it running? `openclaw gateway status` tells."}
	errStarting  = &failure{code: protocol.CodeAgentUnavailable, words: "OpenClaw is still starting. Ask again in a moment."}
	errNoToken   = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "There is no token for OpenClaw. Whoever runs this gateway: set OPENCLAW_GATEWAY_TOKEN to OpenClaw's gateway.auth.token."}
	errToken     = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw refused the token. Whoever runs this gateway: use the one that OpenClaw has as gateway.auth.token."}
	errTooOften  = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw takes no more tries for now, after wrong tokens. Correct the token, wait some minutes, and ask again."}
	errPairing   = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw wants a paired device, which Vela is not. Whoever runs this gateway: reach OpenClaw from its own machine, or through a tunnel to it, with its token."}
	errProtocol  = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw and Vela speak different versions of OpenClaw's protocol. Update the older of the two."}
	errNoRights  = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw let Vela in without the right to ask (operator.write). Whoever runs this gateway: reach OpenClaw from its own machine, with its token, and through no proxy that adds an Origin header."}
	errNoReading = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw let Vela in without the right to listen (operator.read). Whoever runs this gateway: reach OpenClaw from its own machine, with its token, and through no proxy that adds an Origin header."}
	errAddress   = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw's address has to be ws://, of this machine, or wss://, without anything but a host and a path: its token goes over it."}
	errKey       = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw wants its token. Set it as the key: it stands in OpenClaw's settings as gateway.auth.token."}
	errRefused   = &failure{code: protocol.CodeAgentUnavailable, lasts: true, words: "OpenClaw refused the connection. Whoever runs this gateway: its log says why."}
	errClosed    = &failure{code: protocol.CodeAgentUnavailable, words: "This gateway is stopping. Ask again in a moment."}
	errBusy      = &failure{code: protocol.CodeAgentUnavailable, words: "Too many turns wait for the agent. Ask again in a moment."}
)

// What ends a turn.
var (
	errNotTaken  = &failure{code: protocol.CodeAgentTimeout, words: "The agent did not take the question in time. Ask again."}
	errNoSign    = &failure{code: protocol.CodeAgentTimeout, words: "The agent did not begin to answer in time. Ask again."}
	errLost      = &failure{code: protocol.CodeAgentFailed, words: "The connection to the agent was lost in the middle of its answer. Ask again."}
	errBehind    = &failure{code: protocol.CodeAgentFailed, words: "The agent answered faster than it could be passed on. Ask again."}
	errStopped   = &failure{code: protocol.CodeAgentFailed, words: "The answer was stopped on the agent's side."}
	errNotSent   = &failure{code: protocol.CodeAgentFailed, words: "The agent refused the question. Whoever runs this gateway: OpenClaw's log says why."}
	errStillBusy = &failure{code: protocol.CodeAgentUnavailable, words: "The agent is still busy with what it did before. Ask again in a moment."}
	errRunFailed = &failure{code: protocol.CodeAgentFailed, words: "The agent stopped with an error. Whoever runs this gateway: OpenClaw's log says why."}
	errModelKey  = &failure{code: protocol.CodeAgentFailed, words: "The agent's model refused its key or its account. Whoever runs this gateway: look at OpenClaw's model settings."}
	errModelBusy = &failure{code: protocol.CodeAgentFailed, words: "The agent's model is too busy. Ask again in a moment."}
	errModelLate = &failure{code: protocol.CodeAgentTimeout, words: "The agent's model did not answer in time. Ask again."}
	errModelGone = &failure{code: protocol.CodeAgentFailed, words: "The agent's model does not exist. Whoever runs this gateway: look at OpenClaw's model settings."}
	errTooLong   = &failure{code: protocol.CodeAgentFailed, words: "The conversation is too long for the agent's model. Start a new one."}
)

// runFailure says in words why a run failed. The reasons are OpenClaw's (packages/gateway-protocol, failover-reasons);
// its own words may name paths and addresses, so they are a cause.
func runFailure(reason string, cause error) *failure {
	switch reason {
	case "auth", "auth_permanent", "billing":
		return errModelKey.because(cause)
	case "rate_limit", "overloaded":
		return errModelBusy.because(cause)
	case "timeout":
		return errModelLate.because(cause)
	case "model_not_found":
		return errModelGone.because(cause)
	case "context_overflow":
		return errTooLong.because(cause)
	}
	return errRunFailed.because(cause)
}
