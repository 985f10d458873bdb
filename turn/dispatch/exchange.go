package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"vela/protocol/signal"
	"vela/turn"
)

// exchange is one turn on its way through its steps. It belongs to the goroutine of Run.
type exchange struct {
	*Engine
	req     turn.Request
	yield   func(signal.Payload, error) bool
	left    bool // the reader has left the loop, and yield must not be called any more
	folder  *folder
	watch   *watch
	earlier []finished
}

// finished is a step that has been answered.
type finished struct {
	Step Step
	Data json.RawMessage // a JSON object
}

// errSilence ends a turn that nobody listens to any more: it was cancelled, or its reader has left.
var errSilence = errors.New("dispatch: nobody listens")

// answer runs the whole turn. It returns a *failure, or errSilence.
func (x *exchange) answer(ctx context.Context) (err error) {
	if x.folder, err = x.suites.open(x.cfg.Dir, x.req.SessionID); err != nil {
		return unusable(err)
	}
	defer x.folder.close()
	x.watch = listen(x.notify, x.cfg.Poll)
	defer x.watch.close()
	x.watch.add(x.folder.path)
	if !x.show(ctx, signal.AgentStateChange{AgentID: AgentID, From: signal.AgentIdle, To: signal.AgentWaiting}) {
		return errSilence
	}
	for _, step := range x.cfg.Steps {
		data, err := x.step(ctx, step)
		if err != nil {
			return err
		}
		x.earlier = append(x.earlier, finished{step, data})
	}
	return x.say(ctx)
}

// say ends the turn with the text of the last artifact.
func (x *exchange) say(ctx context.Context) error {
	last := x.earlier[len(x.earlier)-1]
	text, found := answerText(last.Data, x.path)
	if !found {
		x.cfg.Log.Warn("no text where the answer was to be", "session", x.req.SessionID, "step", last.Step, "path", x.cfg.Answer)
	}
	index := 0
	for piece := range pieces(text) {
		if !x.show(ctx, signal.TextDelta{AgentID: AgentID, Content: piece, Index: index}) {
			return errSilence
		}
		index++
	}
	if x.show(ctx, signal.AgentStateChange{AgentID: AgentID, From: signal.AgentWaiting, To: signal.AgentDone}) {
		x.show(ctx, signal.Completion{TaskID: x.req.TurnID, AgentID: AgentID, Success: true})
	}
	return nil
}

// show yields a signal, and says whether anybody wants more.
func (x *exchange) show(ctx context.Context, p signal.Payload) bool {
	if !x.left && ctx.Err() == nil {
		x.left = !x.yield(p, nil)
	}
	return !x.left && ctx.Err() == nil
}

// step dispatches one step and returns the data of its artifact.
func (x *exchange) step(ctx context.Context, step Step) (json.RawMessage, error) {
	d, err := x.folder.dispatch(step)
	if err != nil {
		return nil, unusable(err)
	}
	call := signal.ToolCall{ToolName: string(step), AgentID: AgentID, CallID: fmt.Sprintf("%s-%d", d.CaseID, d.DispatchID)}
	call.Input, _ = json.Marshal(map[string]any{"case_id": d.CaseID, "dispatch_id": d.DispatchID}) // cannot fail
	if !x.show(ctx, call) {
		return nil, errSilence
	}
	result := signal.ToolResult{ToolName: call.ToolName, AgentID: AgentID, CallID: call.CallID}
	data, err := x.await(ctx, d)
	var f *failure
	switch {
	case errors.As(err, &f):
		result.Output, _ = json.Marshal(map[string]string{"error": f.words})
		x.show(ctx, result)
		return nil, err
	case err != nil:
		return nil, err
	}
	result.Success, result.Output = true, data
	listens := x.show(ctx, result)
	if err := d.write(Done, ""); err != nil {
		return nil, unusable(err)
	}
	if !listens {
		return nil, errSilence
	}
	return data, nil
}

// await asks for an artifact and waits until it is there. Then the status is "processing"; after any error it is
// "error", in the words of whoever was first to write it.
func (x *exchange) await(ctx context.Context, d *dispatch) (json.RawMessage, error) {
	err := d.ask(prompt{Signal: d.Signal, Request: x.req, Earlier: x.earlier, Last: d.Step == x.cfg.Steps[len(x.cfg.Steps)-1], Answer: x.cfg.Answer})
	if err != nil {
		return nil, unusable(err)
	}
	data, err := x.poll(ctx, d)
	var f *failure
	switch {
	case err == nil:
		if err := d.write(Processing, ""); err != nil {
			return nil, unusable(err)
		}
		return data, nil
	case !errors.As(err, &f):
		f = &failure{told: "cancelled"}
	case f.told == "": // the responder has said it
		return nil, err
	}
	if unwritten := d.write(Failed, f.told); unwritten != nil {
		x.cfg.Log.Warn("signal.json still says waiting", "session", x.req.SessionID, "case", d.CaseID, "error", unwritten)
	}
	return nil, err
}

// signOfLife is how often a turn says that it still waits: a session gives an agent up that is silent for too long.
const signOfLife = 30 * time.Second

// poll looks at the files whenever they may have changed.
func (x *exchange) poll(ctx context.Context, d *dispatch) (json.RawMessage, error) {
	deadline := time.NewTimer(x.cfg.Timeout)
	defer deadline.Stop()
	alive := time.NewTicker(signOfLife)
	defer alive.Stop()
	again := time.NewTimer(0) // of an artifact that was not valid
	again.Stop()
	defer again.Stop()
	for half := false; ; {
		if err := d.withdrawn(); err != nil {
			return nil, err
		}
		if !half {
			data, err := d.artifact()
			if err == nil || !errors.Is(err, errNotYet) && !errors.Is(err, errInvalid) {
				return data, err
			}
			if half = errors.Is(err, errInvalid); half {
				again.Reset(x.cfg.Retry)
			}
		}
		select {
		case <-x.watch.bell:
		case <-again.C:
			data, err := d.artifact()
			if err == nil {
				return data, nil
			}
			if errors.Is(err, errInvalid) {
				return nil, unreadable(err)
			}
			half = false
		case <-alive.C:
			if !x.show(ctx, signal.AgentStateChange{AgentID: AgentID, From: signal.AgentWaiting, To: signal.AgentWaiting, Reason: "still waiting for " + string(d.Step)}) {
				return nil, errSilence
			}
		case <-deadline.C:
			return nil, late(d.Signal, x.cfg.Timeout)
		case <-ctx.Done():
			return nil, errSilence
		}
	}
}
