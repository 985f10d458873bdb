package openclaw

import (
	"encoding/json"
	"strings"
	"testing"

	"vela/protocol/signal"
)

func TestWhatAnObserverMakesOfFrames(t *testing.T) {
	event := func(name, payload string) string {
		return `{"type":"event","event":"` + name + `","payload":` + payload + `}`
	}
	for name, x := range map[string]struct{ frame, want string }{
		"a challenge":               {event("connect.challenge", `{"nonce":"n"}`), ""},
		"a bare challenge":          {`{"type":"connect.challenge"}`, ""},
		"a response":                {`{"type":"res","id":"1","ok":true}`, ""},
		"a ping":                    {`{"type":"ping"}`, ""},
		"a pong":                    {`{"type":"pong"}`, ""},
		"a presence of the system":  {event("system-presence", `{}`), ""},
		"an unknown type":           {`{"type":"telegram"}`, ""},
		"no object":                 {`[]`, ""},
		"chat of no run":            {event("chat", `{"state":"delta"}`), ""},
		"words of a session":        {event("session.message", `{"message":{"content":"again"}}`), ""},
		"a heartbeat":               {event("heartbeat", `{"ts":1,"status":"ok"}`), `event {"ts":1,"status":"ok","_meta":{"heartbeat":true}}`},
		"a heartbeat of before":     {`{"type":"heartbeat","payload":{"data":{"ts":1}}}`, `event {"ts":1,"_meta":{"heartbeat":true}}`},
		"a cron job":                {event("cron", `{"jobId":"j","action":"added"}`), `event {"jobId":"j","action":"added","_meta":{"cron":true,"cronJobId":"j"}}`},
		"a cron job of before":      {event("cron", `{"data":{"jobId":"j"}}`), `event {"jobId":"j","_meta":{"cron":true,"cronJobId":"j"}}`},
		"a cron job without an id":  {event("cron", `{"jobId":7}`), `event {"jobId":7,"_meta":{"cron":true}}`},
		"a wish for a yes":          {event("exec.approval.requested", `{"agentId":"a","provider":"telegram","label":"Me","sessionKey":"k"}`), `agent_state_change {"agentId":"a","from":"acting","to":"waiting","reason":"approval","channel":"telegram","channelLabel":"Me","sessionKey":"k"}`},
		"one of before":             {`{"type":"exec.approval.requested","payload":{"data":{"agentId":"a","provider":"p"}}}`, `agent_state_change {"agentId":"a","from":"acting","to":"waiting","reason":"approval","channel":"p"}`},
		"the tokens of a session":   {event("session", `{"data":{"promptTokens":3,"completionTokens":4,"model":"m"},"sessionKey":"agent:ops:k"}`), `token_usage {"agentId":"ops","promptTokens":3,"completionTokens":4,"model":"m","sessionKey":"agent:ops:k"}`},
		"with other names":          {event("session", `{"data":{"input_tokens":3,"output_tokens":-4}}`), `token_usage {"agentId":"openclaw","promptTokens":3,"completionTokens":0,"model":"unknown"}`},
		"a session without tokens":  {event("session", `{"data":{"x":1}}`), `event {"data":{"x":1},"eventCategory":"session"}`},
		"any other event":           {event("tick", `{"ts":1}`), `event {"ts":1,"eventCategory":"tick"}`},
		"one without a payload":     {`{"type":"event","event":"x"}`, `event {"eventCategory":"x"}`},
		"one with a strange one":    {event("x", `[1]`), `event {"eventCategory":"x"}`},
		"one that is long":          {event("health", `{"x":"`+strings.Repeat("x", maxEvent)+`"}`), `event {"eventCategory":"health"}`},
		"a run on a channel":        {`{"type":"event","event":"agent","payload":{"runId":"r","agentId":"a","stream":"assistant","data":{"text":"hi","provider":"telegram","label":"Me"},"sessionKey":"k"}}`, `text_delta {"agentId":"a","content":"hi","channel":"telegram","channelLabel":"Me","sessionKey":"k"}`},
		"a tool of a run of others": {`{"type":"event","event":"session.tool","payload":{"runId":"r","agentId":"a","stream":"tool","data":{"phase":"start","name":"n","toolCallId":"c","args":{}}}}`, `tool_call {"toolName":"n","agentId":"a","callId":"c","input":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var o Observer
			var got []string
			for _, s := range o.Observe([]byte(x.frame)) {
				r, err := signal.Envelope{ID: "1", Source: "s", Payload: s.Payload, Channel: &s.Channel}.Raw()
				if err != nil {
					t.Fatal(err)
				}
				if err := signal.Check(r); err != nil {
					t.Error(err)
				}
				if wants := strings.Contains(x.frame, "runId"); (s.RunID == "r") != wants {
					t.Errorf("it is of the run %q", s.RunID)
				}
				got = append(got, r.Type+" "+string(r.Payload))
			}
			if strings.Join(got, "|") != x.want {
				t.Errorf("got  %q\nwant %q", got, x.want)
			}
		})
	}
}

// What OpenClaw says of itself, as it was recorded: marks, and no words of a run.
func TestAnObserverOfItself(t *testing.T) {
	marks := map[string]bool{}
	var o Observer
	for _, message := range received(t, "itself") {
		for _, s := range o.Observe(message) {
			var e struct {
				Category string `json:"eventCategory"`
				Meta     struct {
					Heartbeat bool   `json:"heartbeat"`
					Cron      bool   `json:"cron"`
					JobID     string `json:"cronJobId"`
				} `json:"_meta"`
			}
			if other, is := s.Payload.(signal.Other); !is || json.Unmarshal(other.Body, &e) != nil {
				t.Errorf("%s of %s", s.Payload.SignalType(), message)
			}
			marks[e.Category] = true
			marks["heartbeat"] = marks["heartbeat"] || e.Meta.Heartbeat
			marks["cron"] = marks["cron"] || e.Meta.Cron && e.Meta.JobID != ""
		}
	}
	for _, want := range []string{"tick", "heartbeat", "cron", "task", "presence"} {
		if !marks[want] {
			t.Errorf("nothing of %s: %v", want, marks)
		}
	}
	if marks["session.message"] {
		t.Error("the words of a session are told once more")
	}
}
