package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nhooyr.io/websocket"
)

// observed is OpenClaw as a source of Vela's signals: Vela only listens, while another client drives it.
type observed struct {
	vela    *vela
	id      string
	signals chan signalLine // closed when the stream has ended
	stop    func()
}

// signalLine is one signal, as far as it is looked at.
type signalLine struct {
	Type          string `json:"type"`
	CorrelationID string `json:"correlationId"`
	Metadata      struct {
		SourceID string `json:"sourceId"`
	} `json:"metadata"`
	Payload struct {
		Content    string          `json:"content"`
		ToolName   string          `json:"toolName"`
		CallID     string          `json:"callId"`
		Input      json.RawMessage `json:"input"`
		Success    bool            `json:"success"`
		TaskID     string          `json:"taskId"`
		SessionKey string          `json:"sessionKey"`
	} `json:"payload"`
}

// call asks Vela for something.
func (v *vela) call(ctx context.Context, method, path string, body, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+v.addr+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s %s (%w)", method, path, resp.Status, text, err)
	}
	return json.Unmarshal(text, answer)
}

// observe has Vela listen to the OpenClaw of this run.
func (d *drive) observe(ctx context.Context) error {
	var added struct{ ID string }
	// The path says what it is: its usual port would, too.
	if err := d.vela.call(ctx, http.MethodPost, "/api/sources", object{"name": "Claw", "url": fmt.Sprintf("ws://127.0.0.1:%d/openclaw", d.claw.port), "key": token}, &added); err != nil {
		return err
	}
	o := &observed{vela: d.vela, id: added.ID, signals: make(chan signalLine, 4096)}
	d.observed = o
	if err := d.vela.call(ctx, http.MethodPost, "/api/sources/"+url.PathEscape(o.id)+"/connect", nil, &added); err != nil {
		return err
	}
	var streaming context.Context
	streaming, o.stop = context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(streaming, http.MethodGet, "http://"+d.vela.addr+"/__signals__/stream", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	go o.read(resp.Body)
	took, err := o.connected(ctx)
	d.hold("OpenClaw as a source", err == nil, "connected after %s", ms(took))
	if err != nil {
		return err
	}
	return d.overheard(ctx)
}

func (o *observed) read(body io.ReadCloser) {
	defer close(o.signals)
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		var s signalLine
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(text), &s) == nil && s.Metadata.SourceID == o.id {
			o.signals <- s
		}
	}
}

// connected waits until Vela is connected to OpenClaw.
func (o *observed) connected(ctx context.Context) (time.Duration, error) {
	start, last := time.Now(), ""
	for time.Since(start) < 90*time.Second {
		var all struct {
			Sources []struct{ ID, State, Error string }
		}
		if err := o.vela.call(ctx, http.MethodGet, "/api/sources", nil, &all); err != nil {
			return 0, err
		}
		for _, s := range all.Sources {
			if s.ID == o.id {
				last = s.State + " " + s.Error
			}
		}
		if strings.HasPrefix(last, "connected") {
			return time.Since(start), nil
		}
		wait(ctx, 50*time.Millisecond)
	}
	return 0, fmt.Errorf("the source stays %s", last)
}

// overheard is a run with a tool that another client begins.
func (d *drive) overheard(ctx context.Context) error {
	other, err := d.claw.client(ctx)
	if err != nil {
		return err
	}
	defer other.close()
	run, err := other.ask(ctx, "overheard", "use the tool")
	if err != nil {
		return err
	}
	r, err := d.observed.run(ctx, run)
	text, ok := "First I look into the notes. It may take a moment.The notes say hello from the workspace.", false
	if err == nil {
		joined := strings.ReplaceAll(r.text, "\n", "")
		ok = joined == text && r.ends == 1 && r.completed && r.tools == `read {"path":"NOTES.md"} ok` && r.key == "agent:main:overheard"
	}
	d.hold("a run with a tool that another client began, overheard", ok, "%q, tool %q, %d end, in session %s", r.text, r.tools, r.ends, r.key)
	if err != nil {
		return err
	}
	if run, err = other.ask(ctx, "overheard", "slow"); err != nil {
		return err
	}
	if err := other.send(ctx, "chat.abort", object{"sessionKey": "overheard", "runId": run}, nil); err != nil {
		return err
	}
	r, err = d.observed.run(ctx, run)
	d.hold("one that the other client aborted", err == nil && r.ends == 1 && !r.completed, "%d end, and no success", r.ends)
	return err
}

// overheardAgain is the source once OpenClaw has been killed and is back.
func (d *drive) overheardAgain(ctx context.Context) error {
	took, err := d.observed.connected(ctx)
	d.hold("the source once OpenClaw is back", err == nil, "connected again after %s more", ms(took))
	if err != nil {
		return err
	}
	return d.overheard(ctx)
}

// heard is what came of one run through the source.
type heard struct {
	text, tools, key string
	ends             int
	completed        bool
}

// run reads the signals of one run to its end, and a moment longer, in which nothing more may come of it.
func (o *observed) run(ctx context.Context, id string) (h heard, err error) {
	var over <-chan time.Time
	call := ""
	for {
		select {
		case s, open := <-o.signals:
			if !open {
				return h, errors.New("the stream of signals ended")
			}
			if s.CorrelationID != id {
				continue
			}
			p := s.Payload
			h.key = p.SessionKey
			switch s.Type {
			case "text_delta":
				h.text += p.Content
			case "tool_call":
				call = p.CallID
				h.tools += p.ToolName + " " + string(p.Input)
			case "tool_result":
				if p.Success && p.CallID == call && call != "" {
					h.tools += " ok"
				}
			case "completion", "error":
				h.ends++
				h.completed = s.Type == "completion" && p.Success && p.TaskID == id
				over = time.After(time.Second)
			}
		case <-over:
			return h, nil
		case <-ctx.Done():
			return h, context.Cause(ctx)
		}
	}
}

// client is another client of OpenClaw's: what a person has beside Vela.
type client struct {
	ws *websocket.Conn
	n  int
}

func (c *claw) client(ctx context.Context) (*client, error) {
	ws, _, err := websocket.Dial(ctx, fmt.Sprintf("ws://127.0.0.1:%d", c.port), nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(32 << 20)
	o := &client{ws: ws}
	if _, _, err := ws.Read(ctx); err != nil { // the challenge, which loopback need not meet
		return nil, err
	}
	return o, o.send(ctx, "connect", object{"minProtocol": 3, "maxProtocol": 4, "role": "operator", "scopes": []string{"operator.read", "operator.write"},
		"client": object{"id": "cli", "version": "1.0.0", "platform": "linux", "mode": "cli"}, "auth": object{"token": token}}, nil)
}

func (o *client) close() { _ = o.ws.CloseNow() }

// send makes a request, and reads what it is answered. Events in between are nobody's.
func (o *client) send(ctx context.Context, method string, params object, answer any) error {
	o.n++
	id := fmt.Sprint("r", o.n)
	b, err := json.Marshal(object{"type": "req", "id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if err := o.ws.Write(ctx, websocket.MessageText, b); err != nil {
		return err
	}
	for {
		_, frame, err := o.ws.Read(ctx)
		if err != nil {
			return err
		}
		var res struct {
			Type, ID string
			OK       bool
			Payload  json.RawMessage
			Error    json.RawMessage
		}
		if err := json.Unmarshal(frame, &res); err != nil || res.Type != "res" || res.ID != id {
			continue
		}
		if !res.OK {
			return fmt.Errorf("%s is answered with %s", method, res.Error)
		}
		if answer == nil {
			return nil
		}
		return json.Unmarshal(res.Payload, answer)
	}
}

// ask begins a run in a session, and returns its id.
func (o *client) ask(ctx context.Context, session, text string) (string, error) {
	var started struct{ RunID string }
	err := o.send(ctx, "chat.send", object{"sessionKey": session, "message": text, "idempotencyKey": fmt.Sprintf("other-%d-%d", o.n, time.Now().UnixNano())}, &started)
	return started.RunID, err
}
