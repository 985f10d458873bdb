package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/agent"
	"vela/turn/tool"
)

// oracle stands for a vendor's model. It asks the clock before it answers.
type oracle struct{}

func (oracle) Stream(_ context.Context, p agent.Prompt) iter.Seq2[signal.Payload, error] {
	return func(yield func(signal.Payload, error) bool) {
		last := p.Messages[len(p.Messages)-1]
		if len(last.Results) == 0 {
			yield(signal.ToolCall{CallID: "1", ToolName: "clock", Input: json.RawMessage(`{"zone":"UTC"}`)}, nil)
			return
		}
		yield(signal.TextDelta{Content: "It is " + last.Results[0].Content + "."}, nil)
	}
}

type clock struct{}

func (clock) Definition() tool.Definition {
	return tool.Definition{Name: "clock", Description: "Tells the time.", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (clock) Run(context.Context, json.RawMessage) (tool.Result, error) {
	return tool.Result{Content: "noon"}, nil
}

func Example() {
	tools, err := tool.NewSet(clock{})
	if err != nil {
		panic(err)
	}
	a, err := agent.New(agent.Config{ID: "vela", Model: oracle{}, Tools: tools, Rules: tool.Rules{Default: tool.Allow}})
	if err != nil {
		panic(err)
	}
	for p, err := range a.Run(context.Background(), turn.Request{TurnID: "t1", Text: "What time is it?"}) {
		switch p := p.(type) {
		case nil:
			fmt.Println(err)
		case signal.ToolCall:
			fmt.Printf("%s %s\n", p.ToolName, p.Input)
		case signal.TextDelta:
			fmt.Println(p.Content)
		}
	}
	// Output:
	// clock {"zone":"UTC"}
	// It is noon.
}
