package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/looplab/fsm"

	"vela/protocol"
)

// TestTheTable spells out where each event leads from each phase; "" is a step that the table does not have.
func TestTheTable(t *testing.T) {
	phases := []string{"idle", "listening", "thinking", "speaking"}
	table := map[string][]string{
		//             from idle    listening    thinking    speaking
		"append":  {"listening", "", "", ""},
		"trigger": {"listening", "listening", "", ""},
		"nothing": {"idle", "idle", "", ""},
		"think":   {"thinking", "thinking", "", ""},
		"say":     {"", "", "speaking", ""},
		"finish":  {"", "listening", "idle", "idle"},
		"cancel":  {"", "idle", "idle", "idle"},

		"barge_in": {"", "listening", "listening", "listening"},
		"hold":     {"", "", "listening", "listening"},
		"think_on": {"", "thinking", "", ""},
		"speak_on": {"", "speaking", "", ""},
	}
	for event, leads := range table {
		for i, want := range leads {
			m := newMachine()
			m.fsm.SetState(phases[i])
			err := m.fire(event)
			if want == "" {
				if err == nil {
					t.Errorf("%s while %s leads to %s, want an error", event, phases[i], m.state())
				}
				want = phases[i]
			} else if err != nil {
				t.Errorf("%s while %s: %v", event, phases[i], err)
			}
			if m.state() != protocol.State(want) {
				t.Errorf("%s while %s leads to %s, want %s", event, phases[i], m.state(), want)
			}
			if m.fsm.SetState(phases[i]); m.can(event) != (leads[i] != "") {
				t.Errorf("%s while %s: can is %t", event, phases[i], m.can(event))
			}
		}
	}
	var events []string
	for _, e := range transitions {
		events = append(events, e.Name)
	}
	slices.Sort(events)
	events = slices.Compact(events) // an event may lead to several phases
	if want := slices.Sorted(maps.Keys(table)); !slices.Equal(events, want) {
		t.Errorf("the events are %v, want %v", events, want)
	}
}

func TestTheMachineBeginsIdle(t *testing.T) {
	if s := newMachine().state(); s != protocol.Idle {
		t.Errorf("it begins %s", s)
	}
}

func TestAMisspeltEventIsAnError(t *testing.T) {
	m := newMachine()
	err := m.fire("apend")
	var unknown fsm.UnknownEventError
	if !errors.As(err, &unknown) {
		t.Errorf("error %v, want an unknown event", err)
	}
	if m.state() != protocol.Idle || m.can("apend") {
		t.Errorf("it moved to %s", m.state())
	}
}

// The machine never rests between two phases: whatever is fired, the next event works.
func TestTheMachineIsNeverStuck(t *testing.T) {
	m := newMachine()
	for range 100 {
		for _, event := range []string{"say", "append", "append", "think", "apend", "say", "cancel", "nothing"} {
			_ = m.fire(event)
		}
		if m.state() != protocol.Idle {
			t.Fatalf("after the round it is %s", m.state())
		}
	}
}

const diagram = `stateDiagram-v2
    [*] --> idle
    idle --> listening: append
    idle --> idle: nothing
    idle --> thinking: think
    idle --> listening: trigger
    listening --> listening: barge_in
    listening --> idle: cancel
    listening --> listening: finish
    listening --> idle: nothing
    listening --> speaking: speak_on
    listening --> thinking: think
    listening --> thinking: think_on
    listening --> listening: trigger
    speaking --> listening: barge_in
    speaking --> idle: cancel
    speaking --> idle: finish
    speaking --> listening: hold
    thinking --> listening: barge_in
    thinking --> idle: cancel
    thinking --> idle: finish
    thinking --> listening: hold
    thinking --> speaking: say
`

func TestDiagram(t *testing.T) {
	for range 20 { // looplab/fsm keeps its table in a map
		got, err := Diagram()
		if err != nil {
			t.Fatal(err)
		}
		if got != diagram {
			t.Fatalf("the diagram is\n%s\nwant\n%s", got, diagram)
		}
	}
}

func ExampleDiagram() {
	text, err := Diagram()
	fmt.Println(text[:15], err)
	// Output: stateDiagram-v2 <nil>
}
