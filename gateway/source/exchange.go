package source

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn/stream"
)

// Exchange is one question to a model that is a source, and its answer.
type Exchange struct {
	Stamp
	Protocol Protocol
	Model    string
	ID       string // of the exchange: the correlation id of its signals, and the task of its completion
}

// Signals makes signals of an answer, as the vendor's package parses it: the task that is given; what comes; and then one
// completion, or, for an answer that is not whole, one error. Nothing more comes once ctx is done, for who stops an answer
// knows that.
func (x Exchange) Signals(ctx context.Context, prompt string, answer iter.Seq2[signal.Payload, error]) iter.Seq[signal.Raw] {
	return func(yield func(signal.Raw) bool) {
		say := func(source string, p signal.Payload) bool { return yield(x.seal(source, x.ID, nil, p)) }
		if !say("user", signal.TaskDispatch{TaskID: x.ID, From: "user", To: x.Model, Description: prompt}) {
			return
		}
		texts, begun := 0, false
		for p, err := range answer {
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				say(x.Model, x.failure(err))
				return
			}
			if !begun && x.Protocol == Anthropic {
				started := signal.AgentStateChange{AgentID: x.Model, From: signal.AgentIdle, To: signal.AgentActing, Reason: "message started"}
				if !say(x.Model, started) {
					return
				}
			}
			begun = true
			switch called := p.(type) {
			case signal.TextDelta:
				texts++
			case signal.ToolCall:
				called.Input = stream.Object(called.Input) // a model may write anything
				p = called
			case signal.Other: // what the model wants back is nobody else's
				continue
			}
			if !say(x.Model, p) {
				return
			}
		}
		if ctx.Err() == nil {
			say(x.Model, signal.Completion{TaskID: x.ID, AgentID: x.Model, Success: true, Result: fmt.Sprintf("Stream completed (%d chunks)", texts)})
		}
	}
}

// failure tells of an error in words that are fit for anybody.
func (x Exchange) failure(err error) signal.Error {
	said := signal.Error{AgentID: x.Model, Code: string(protocol.CodeAgentFailed), Message: "The model's answer failed.", Severity: signal.SeverityError}
	var fit interface {
		error
		Code() protocol.Code
	}
	if errors.As(err, &fit) {
		said.Code, said.Message = string(fit.Code()), fit.Error()
	}
	return said
}
