package openclaw

import (
	"bytes"
	"encoding/json"

	"vela/protocol/signal"
)

// Observed is what one frame says to somebody who only listens. RunID is empty for what is no part of a run.
type Observed struct {
	RunID   string
	Channel signal.Channel
	Payload signal.Payload
}

// Observer makes signals of all that a connection hears: of runs, as [Translator] does, and of what OpenClaw says of
// itself, as signals of the type "event" with the frame's name as eventCategory. Heartbeats and cron jobs have a mark in
// _meta, since nobody but a developer wants to see them. What only repeats a run's words makes nothing.
//
// Its zero value works. It belongs to one goroutine.
type Observer struct{ translator Translator }

// eventType is the type of signals about OpenClaw itself.
const eventType = "event"

// maxEvent bounds what is passed on of an event that is no run's, in bytes.
const maxEvent = 64 << 10

// Observe makes signals of one frame as it was received.
func (o *Observer) Observe(message []byte) []Observed {
	f, err := parseFrame(message)
	if err != nil {
		return nil
	}
	name := f.Event
	if name == "" {
		name = f.Type
	}
	var about about
	if len(f.Payload) > 0 {
		_ = lenient(f.Payload, &about) // what is absent, or of another type, is left out
	}
	channel := about.channel()
	if ev, ok := f.run(); ok {
		var all []Observed
		for _, s := range o.translator.next(ev) {
			all = append(all, Observed{s.RunID, channel, s.Payload})
		}
		return all
	}
	payload := about.event(name, f)
	if payload == nil {
		return nil
	}
	if _, other := payload.(signal.Other); other {
		channel = signal.Channel{} // it stands in the event as it came
	}
	return []Observed{{about.RunID, channel, payload}}
}

// about is what any event may have, in the event itself or in its data.
type about struct {
	place
	RunID string `json:"runId"`
	Data  struct {
		place
		JobID            string `json:"jobId"`
		CronJobID        string `json:"cronJobId"`
		Model            string `json:"model"`
		PromptTokens     *int   `json:"promptTokens"`
		InputTokens      *int   `json:"input_tokens"`
		CompletionTokens *int   `json:"completionTokens"`
		OutputTokens     *int   `json:"output_tokens"`
	} `json:"data"`
	JobID string `json:"jobId"`
}

type place struct {
	AgentID    string `json:"agentId"`
	Provider   string `json:"provider"`
	Label      string `json:"label"`
	SessionKey string `json:"sessionKey"`
}

func (a about) channel() signal.Channel {
	return signal.Channel{
		Name: first(a.Provider, a.Data.Provider), Label: first(a.Label, a.Data.Label), SessionKey: first(a.SessionKey, a.Data.SessionKey),
	}
}

// event is what an event comes to that is no part of a run; nil for nothing.
func (a about) event(name string, f frame) signal.Payload {
	agent := first(a.AgentID, a.Data.AgentID, agentOf(a.channel().SessionKey), "openclaw")
	switch name {
	case "connect.challenge", "res", "pong", "ping", "system-presence", "":
		return nil
	case "agent", "chat", "session.tool", "session.message": // said by a run, or no event of ours
		return nil
	case "heartbeat":
		return marked(f.Payload, map[string]any{"heartbeat": true})
	case "cron":
		meta := map[string]any{"cron": true}
		if id := first(a.Data.CronJobID, a.Data.JobID, a.JobID); id != "" {
			meta["cronJobId"] = id
		}
		return marked(f.Payload, meta)
	case "exec.approval.requested":
		return signal.AgentStateChange{AgentID: agent, From: signal.AgentActing, To: signal.AgentWaiting, Reason: "approval"}
	case "session":
		d := a.Data
		prompt, completion := either(d.PromptTokens, d.InputTokens), either(d.CompletionTokens, d.OutputTokens)
		if prompt != nil || completion != nil {
			return signal.TokenUsage{AgentID: agent, PromptTokens: orZero(prompt), CompletionTokens: orZero(completion), Model: first(d.Model, "unknown")}
		}
	}
	if f.Event == "" && f.Type != "event" {
		return nil
	}
	category, _ := json.Marshal(name) // a string always has a JSON
	return signal.Other{Name: eventType, Body: signal.Set(objectOf(f.Payload), "eventCategory", category)}
}

// marked is the event of OpenClaw's own working, with a mark. Its fields lie in data, or, as today, in the event itself.
func marked(payload json.RawMessage, meta map[string]any) signal.Payload {
	var wrapped struct {
		Data json.RawMessage `json:"data"`
	}
	body := objectOf(payload)
	if json.Unmarshal(body, &wrapped) == nil && len(wrapped.Data) > 0 && wrapped.Data[0] == '{' {
		body = wrapped.Data
	}
	mark, _ := json.Marshal(meta) // strings and booleans always have a JSON
	return signal.Other{Name: eventType, Body: signal.Set(body, "_meta", mark)}
}

// objectOf is an event's payload, if it is an object and not too long.
func objectOf(payload json.RawMessage) json.RawMessage {
	if payload = bytes.TrimSpace(payload); len(payload) == 0 || payload[0] != '{' || len(payload) > maxEvent {
		return json.RawMessage("{}")
	}
	return payload
}

func either(a, b *int) *int {
	if a != nil {
		return a
	}
	return b
}

// orZero is a count: one that is not there, or of no use, is none.
func orZero(n *int) int {
	if n == nil || *n < 0 {
		return 0
	}
	return *n
}
