package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nhooyr.io/websocket"
)

// vela is the built program, with one agent: the OpenClaw of this run.
type vela struct {
	cmd  *exec.Cmd
	addr string
	log  *bytes.Buffer // complete once the process has ended
}

func startVela(program, dir, token string, port int) (*vela, error) {
	config := filepath.Join(dir, "vela.yaml")
	text := fmt.Sprintf("agents:\n  claw:\n    kind: openclaw\n    url: ws://127.0.0.1:%d\n    token_env: OPENCLAW_TOKEN\n    ponder: false\n", port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	v := &vela{log: new(bytes.Buffer)}
	v.cmd = exec.Command(program, "serve", "--addr", "127.0.0.1:0", "--turns", "agent", "--config", config, "--log-level", "debug")
	v.cmd.Env = append(os.Environ(), "OPENCLAW_TOKEN="+token)
	v.cmd.Stderr = v.log
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := v.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Vela: %w; run make build", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, at, ok := strings.Cut(strings.TrimSpace(line), "Vela is at http://")
	if !ok {
		v.kill()
		return nil, fmt.Errorf("vela said %q (%w)\n%s", line, err, v.log)
	}
	v.addr = at
	return v, nil
}

// stop tells it to end, and says how long it took.
func (v *vela) stop() (time.Duration, error) {
	start := time.Now()
	if err := v.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	err := v.cmd.Wait()
	return time.Since(start), err
}

func (v *vela) kill() {
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
}

// session is one conversation over Vela's own protocol, version 2.
type session struct {
	ws     *websocket.Conn
	events chan event      // closed when the connection has ended
	seen   strings.Builder // every message, for what must not be in any; complete once events is closed
}

type event struct {
	Type    string `json:"type"`
	Payload struct {
		Value    string          `json:"value"`
		Text     string          `json:"text"`
		Code     string          `json:"code"`
		Message  string          `json:"message"`
		CallID   string          `json:"callId"`
		Name     string          `json:"name"`
		ToolName string          `json:"toolName"`
		Input    json.RawMessage `json:"input"`
		Success  bool            `json:"success"`
	} `json:"payload"`
}

func (v *vela) talk(ctx context.Context) (*session, error) {
	ws, _, err := websocket.Dial(ctx, "ws://"+v.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{"vela.v2"}})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(4 << 20)
	s := &session{ws: ws, events: make(chan event, 4096)}
	go s.read()
	if err := s.send(ctx, `{"type":"session.start","payload":{"turns":"agent"}}`); err != nil {
		return nil, err
	}
	return s, s.until(ctx, func(e event) bool { return e.Type == "session.state" && e.Payload.Value == "idle" })
}

// read takes what comes all the time, since Vela ends a connection that answers no ping.
func (s *session) read() {
	defer close(s.events)
	for {
		_, frame, err := s.ws.Read(context.Background()) // ends with the connection
		if err != nil {
			return
		}
		s.seen.Write(frame)
		var e event
		if err := json.Unmarshal(frame, &e); err != nil {
			return
		}
		s.events <- e
	}
}

// close ends the connection and waits until nothing reads it any more.
func (s *session) close() {
	_ = s.ws.CloseNow()
	for range s.events {
	}
}

func (s *session) send(ctx context.Context, message string) error {
	return s.ws.Write(ctx, websocket.MessageText, []byte(message))
}

var errEnded = errors.New("the connection to Vela ended")

// until reads to the event that is waited for.
func (s *session) until(ctx context.Context, last func(event) bool) error {
	for {
		select {
		case e, open := <-s.events:
			if !open {
				return errEnded
			}
			if last(e) {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reply is what came of one question.
type reply struct {
	text, thoughts string
	tools          []string // "read ok" or "read failed"
	code, words    string   // of an error
	completed      bool
	first, whole   time.Duration
}

// ask asks one question. at is told of each event and may do something about it, such as cancel.
func (s *session) ask(ctx context.Context, text string, at func(event) error) (reply, error) {
	start := time.Now()
	question, err := json.Marshal(map[string]any{"type": "input_text.submit", "payload": map[string]any{"text": text}})
	if err != nil {
		return reply{}, err
	}
	if err := s.send(ctx, string(question)); err != nil {
		return reply{}, err
	}
	var r reply
	var failed error
	names := map[string]string{}
	thinking := false
	err = s.until(ctx, func(e event) bool {
		if at != nil && failed == nil {
			failed = at(e)
		}
		switch p := e.Payload; e.Type {
		case "response.text.delta":
			if r.text += p.Text; r.first == 0 {
				r.first = time.Since(start)
			}
		case "thinking.delta":
			r.thoughts += p.Text
		case "tool.call":
			names[p.CallID] = p.Name + p.ToolName
		case "tool.result":
			end := " failed"
			if p.Success {
				end = " ok"
			}
			r.tools = append(r.tools, names[p.CallID]+end)
		case "error":
			r.code, r.words = p.Code, p.Message
		case "response.completed":
			r.completed = true
		case "session.state":
			thinking = thinking || p.Value == "thinking"
			return thinking && p.Value == "idle"
		}
		return false
	})
	r.whole = time.Since(start)
	return r, errors.Join(err, failed)
}
