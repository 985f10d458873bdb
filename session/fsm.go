package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/looplab/fsm"

	"vela/protocol"
)

// What moves a session from one phase to another. All of it is here; whatever else a step does follows the transition.
const (
	evAppend  = "append"  // the first audio of a turn
	evTrigger = "trigger" // the fixed turn is asked for
	evNothing = "nothing" // nothing was recognised, or nobody could
	evThink   = "think"   // what the user said is final
	evSay     = "say"     // the answer begins
	evFinish  = "finish"  // the answer is whole, or has failed
	evCancel  = "cancel"
	evBargeIn = "barge_in" // the user speaks, or types, over the answer
	evHold    = "hold"     // the user makes a sound over the answer, which may become words
	evThinkOn = "think_on" // it was none: the answer goes on
	evSpeakOn = "speak_on" // the same, where it has begun
)

// transitions is the table. It has no callbacks: looplab/fsm ignores a misspelt callback's name in silence.
var transitions = fsm.Events{
	{Name: evAppend, Src: []string{idle}, Dst: listening},
	{Name: evTrigger, Src: []string{idle, listening}, Dst: listening},
	{Name: evNothing, Src: []string{idle, listening}, Dst: idle},
	{Name: evThink, Src: []string{idle, listening}, Dst: thinking},
	{Name: evSay, Src: []string{thinking}, Dst: speaking},
	{Name: evFinish, Src: []string{thinking, speaking}, Dst: idle},
	{Name: evFinish, Src: []string{listening}, Dst: listening}, // while it was held
	{Name: evCancel, Src: []string{listening, thinking, speaking}, Dst: idle},
	{Name: evBargeIn, Src: []string{thinking, speaking, listening}, Dst: listening},
	{Name: evHold, Src: []string{thinking, speaking}, Dst: listening},
	{Name: evThinkOn, Src: []string{listening}, Dst: thinking},
	{Name: evSpeakOn, Src: []string{listening}, Dst: speaking},
}

const (
	idle      = string(protocol.Idle)
	listening = string(protocol.Listening)
	thinking  = string(protocol.Thinking)
	speaking  = string(protocol.Speaking)
)

// machine is a session's place in the table.
type machine struct{ fsm *fsm.FSM }

func newMachine() *machine { return &machine{fsm.NewFSM(idle, transitions, nil)} }

func (m *machine) state() protocol.State { return protocol.State(m.fsm.Current()) }

// can says whether the table has the event in the present phase.
func (m *machine) can(event string) bool { return m.fsm.Can(event) }

// fire moves on. The context is always the background's: with one that is cancelled, looplab/fsm v1.0.3 stays between
// two states for ever. An event that leaves the phase as it is counts as a move.
func (m *machine) fire(event string) error {
	err := m.fsm.Event(context.Background(), event)
	var same fsm.NoTransitionError
	if err == nil || errors.As(err, &same) {
		return nil
	}
	return fmt.Errorf("session: %s while %s: %w", event, m.fsm.Current(), err)
}

// Diagram is the table as a Mermaid state diagram; the README's is this text.
func Diagram() (string, error) {
	return fsm.VisualizeForMermaidWithGraphType(newMachine().fsm, fsm.StateDiagram)
}
