package enginetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"vela/protocol/signal"
	"vela/turn"
)

// checks are the suite, in the order in which a new engine wants to hear of them.
var checks = []struct {
	name string
	run  func(*trial)
}{
	{"answers in order", (*trial).order},
	{"yields text that is UTF-8 and objects that are JSON", (*trial).texts},
	{"yields signals that the schema takes", (*trial).schema},
	{"asks nobody where there is nobody", (*trial).askNobody},
	{"takes a no", (*trial).askNo},
	{"stops waiting for an answer when cancelled", (*trial).askForEver},
	{"leaves the request as it is", (*trial).request},
	{"is silent when cancelled before the start", (*trial).cancelledBefore},
	{"is silent when cancelled after each signal", (*trial).cancelledAfter},
	{"ends when cancelled between two signals", (*trial).cancelledBetween},
	{"ends when its reader leaves after each signal", (*trial).left},
	{"serves several at once", (*trial).atOnce},
}

// order: what an engine yields, and that it does so every time.
func (x *trial) order() {
	for _, when := range []string{"the first time", "the second time"} {
		if r := x.start(context.Background(), x.req, nil); x.await(r, x.longest, when) {
			x.inOrder(when, r.yielded)
		}
	}
}

// inOrder holds a whole answer to the contract.
func (x *trial) inOrder(when string, yielded []item) {
	x.Helper()
	if len(yielded) == 0 {
		x.failed(when, "nothing was yielded")
		return
	}
	called := map[string]bool{}
	for i, it := range yielded {
		last := i == len(yielded)-1
		switch p := it.payload.(type) {
		case nil:
			if it.err == nil {
				x.failed(when, "signal %d is nil, and so is its error", i+1)
			}
		case signal.Completion:
			if !last {
				x.failed(when, "signal %d of %d is a completion: nothing may follow it", i+1, len(yielded))
			}
		case signal.ToolCall:
			called[p.CallID] = true
		case signal.ToolResult:
			if p.CallID != "" && !called[p.CallID] {
				x.failed(when, "signal %d is the result of the tool call %q, which was not yielded before", i+1, p.CallID)
			}
		case signal.TextDelta, signal.Thinking, signal.TokenUsage, signal.AgentStateChange:
		default:
			x.failed(when, "signal %d is a %T: an engine has no business with it", i+1, p)
		}
		if it.err != nil && it.payload != nil {
			x.failed(when, "signal %d has a payload and an error", i+1)
		}
		if it.err != nil && !last {
			x.failed(when, "signal %d of %d is an error: nothing may follow it", i+1, len(yielded))
		}
	}
	x.rightEnd(when, yielded[len(yielded)-1])
}

// rightEnd holds the last signal to what the engine was set up for.
func (x *trial) rightEnd(when string, last item) {
	x.Helper()
	_, completed := last.payload.(signal.Completion)
	switch {
	case x.fails && last.err == nil:
		x.failed(when, "the last signal is %v, want an error", last)
	case !x.fails && !completed:
		x.failed(when, "the last signal is %v, want a completion", last)
	}
}

// texts: what cannot be written as JSON cannot be sent.
func (x *trial) texts() {
	for i, it := range x.drive("a run", x.req) {
		for what, text := range textsOf(it.payload) {
			if !utf8.ValidString(text) {
				x.failed("a run", "%s of signal %d is not UTF-8: %q", what, i+1, text)
			}
		}
		for what, body := range objectsOf(it.payload) {
			var object map[string]any
			if len(body) > 0 && json.Unmarshal(body, &object) != nil {
				x.failed("a run", "%s of signal %d is no JSON object: %q", what, i+1, body)
			}
		}
	}
}

// schema: what an engine yields is logged and handed on as it is.
func (x *trial) schema() {
	req := x.req
	req.TurnID = cmp.Or(req.TurnID, "turn-1")
	for i, it := range x.drive("a run", req) {
		if it.payload == nil {
			continue
		}
		r, err := signal.Envelope{ID: "1", Source: "engine", Payload: it.payload}.Raw()
		if err == nil {
			err = signal.Check(r)
		}
		if err != nil {
			x.failed("a run", "signal %d: %v", i+1, err)
		}
		if p, ends := it.payload.(signal.Completion); ends && p.TaskID == "" {
			x.failed("a run", "the completion has no task")
		}
	}
}

func textsOf(p signal.Payload) map[string]string {
	switch p := p.(type) {
	case signal.TextDelta:
		return map[string]string{"the content": p.Content, "the agent": p.AgentID}
	case signal.Thinking:
		return map[string]string{"the content": p.Content, "the agent": p.AgentID}
	case signal.ToolCall:
		return map[string]string{"the tool": p.ToolName, "the call": p.CallID}
	case signal.ToolResult:
		return map[string]string{"the tool": p.ToolName, "the call": p.CallID}
	case signal.AgentStateChange:
		return map[string]string{"the reason": p.Reason}
	case signal.Completion:
		return map[string]string{"the result": p.Result}
	}
	return nil
}

func objectsOf(p signal.Payload) map[string]json.RawMessage {
	switch p := p.(type) {
	case signal.ToolCall:
		return map[string]json.RawMessage{"the input": p.Input}
	case signal.ToolResult:
		return map[string]json.RawMessage{"the output": p.Output}
	}
	return nil
}

// askNobody: a nil Ask is a no.
func (x *trial) askNobody() { x.askWith("without Ask", nil) }

// askNo: a no is an answer to go on with.
func (x *trial) askNo() {
	x.askWith("after a no", func(context.Context, turn.Question) (turn.Answer, error) { return turn.Answer{}, nil })
}

// askWith: what an engine does after a no is its own affair, but there is one end.
func (x *trial) askWith(when string, ask func(context.Context, turn.Question) (turn.Answer, error)) {
	x.Helper()
	req := x.req
	req.Ask = ask
	r := x.start(context.Background(), req, nil)
	if !x.await(r, x.longest, when) {
		return
	}
	if n := len(r.yielded); n == 0 || !r.yielded[n-1].isEnd() {
		x.failed(when, "neither a completion nor an error ends what was yielded: %v", r.yielded)
	}
}

func (it item) isEnd() bool {
	_, completed := it.payload.(signal.Completion)
	return completed || it.err != nil
}

// askForEver: nobody answers, and the turn is cancelled.
func (x *trial) askForEver() {
	const when = "cancelled while it asks"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := make(chan struct{})
	var once sync.Once
	req := x.req
	req.Ask = func(theirs context.Context, _ turn.Question) (turn.Answer, error) {
		once.Do(func() {
			cancel()
			close(asked)
		})
		<-theirs.Done()
		return turn.Answer{}, context.Cause(theirs)
	}
	r := x.start(ctx, req, nil)
	if !x.awaitAfter(r, asked, when) || ctx.Err() == nil {
		return // most engines ask nothing
	}
	if n := len(r.yielded); n > 0 && r.yielded[n-1].isEnd() && r.yielded[n-1].err == nil {
		x.failed(when, "the answer was completed all the same")
	}
}

// request: the history belongs to the session, and so does what lies behind its end.
func (x *trial) request() {
	req := x.req
	if len(req.History) == 0 {
		req.History = []turn.Message{{Role: turn.User, Text: "earlier"}, {Role: turn.Assistant, Text: "answered"}}
	}
	n := len(req.History)
	room := append(slices.Clone(req.History), make([]turn.Message, 8)...)
	before := slices.Clone(room)
	req.History = room[:n]
	x.drive("with a history", req)
	if !reflect.DeepEqual(room[:n], before[:n]) {
		x.failed("with a history", "the history was changed")
	}
	if !reflect.DeepEqual(room[n:], before[n:]) {
		x.failed("with a history", "something was appended to the history in place: clip it first")
	}
}

// cancelledBefore: an error may be told, nothing else.
func (x *trial) cancelledBefore() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	const when = "cancelled before the start"
	r := x.start(ctx, x.req, nil)
	if x.await(r, x.patience, when) {
		x.silent(when, r.yielded)
	}
}

// silent: after its cancel an engine may still say that it was cancelled, as an error, and nothing else.
func (x *trial) silent(when string, after []item) {
	x.Helper()
	for i, it := range after {
		if it.err == nil || i > 0 {
			x.failed(when, "%v was yielded after the cancel", it)
			return
		}
	}
}

// cancelledAfter cancels while the engine hands over its k-th signal, for each k.
func (x *trial) cancelledAfter() {
	for _, k := range x.points() {
		when := fmt.Sprintf("cancelled after signal %d", k)
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := make(chan struct{})
		r := x.start(ctx, x.req, func(n int) bool {
			if n == k {
				cancel()
				close(cancelled)
			}
			return true
		})
		if x.awaitAfter(r, cancelled, when) {
			x.silent(when, r.yielded[min(k, len(r.yielded)):])
		}
		cancel()
	}
}

// cancelledBetween cancels while the engine waits for what it will yield next.
func (x *trial) cancelledBetween() {
	usual := x.drive("a run", x.req)
	for _, k := range x.points() {
		if k >= len(usual) {
			continue
		}
		gap := usual[k].at.Sub(usual[k-1].at) / 2
		when := fmt.Sprintf("cancelled %v after signal %d", gap, k)
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := make(chan struct{})
		r := x.start(ctx, x.req, func(n int) bool {
			if n == k {
				time.AfterFunc(gap, func() {
					cancel()
					close(cancelled)
				})
			}
			return true
		})
		x.awaitAfter(r, cancelled, when)
		cancel()
	}
}

// left leaves the loop at the k-th signal, for each k.
func (x *trial) left() {
	for _, k := range x.points() {
		when := fmt.Sprintf("left after signal %d", k)
		gone := make(chan struct{})
		r := x.start(context.Background(), x.req, func(n int) bool {
			if n == k {
				close(gone)
			}
			return n < k
		})
		x.awaitAfter(r, gone, when)
	}
}

// atOnce lets several loops run over one engine at a time.
func (x *trial) atOnce() {
	var started [8]*run
	for i := range started {
		started[i] = x.start(context.Background(), x.req, nil)
	}
	for i, r := range started {
		when := fmt.Sprintf("loop %d of %d at once", i+1, len(started))
		if x.await(r, x.longest, when) {
			x.inOrder(when, r.yielded)
		}
	}
}

// most bounds after how many signals a long answer is broken off: the first and the last ones are where engines err.
const most = 40

// points are the numbers of the signals to break off after.
func (x *trial) points() []int {
	n := len(x.drive("a run", x.req))
	var ks []int
	for k := 1; k <= n; k++ {
		if k <= most/2 || k > n-most/2 {
			ks = append(ks, k)
		}
	}
	return ks
}
