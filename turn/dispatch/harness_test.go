package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/turn"
	"vela/turn/dispatch"
)

const suite = "1"

var request = turn.Request{SessionID: suite, TurnID: "t1", Text: "why did it fail"}

// newEngine polls, so that it may run in a bubble.
func newEngine(t *testing.T, cfg dispatch.Config) *dispatch.Engine {
	t.Helper()
	e, err := dispatch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e.PollOnly()
}

// respond runs a responder until the test ends.
func respond(t *testing.T, r dispatch.Responder) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// always answers every task with the same data.
func always(data string) func(context.Context, dispatch.Task) (json.RawMessage, error) {
	return func(context.Context, dispatch.Task) (json.RawMessage, error) { return json.RawMessage(data), nil }
}

// told is what a turn has yielded.
type told struct {
	signals []signal.Payload
	text    string
	tools   []signal.ToolResult
	ended   bool
	err     error
}

func (o told) code() protocol.Code {
	var coded interface{ Code() protocol.Code }
	if errors.As(o.err, &coded) {
		return coded.Code()
	}
	return ""
}

// ask runs a turn. at sees each signal while the engine waits for it to be taken; it may be nil.
func ask(ctx context.Context, e turn.Engine, req turn.Request, at func(signal.Payload)) told {
	var o told
	for p, err := range e.Run(ctx, req) {
		if err != nil {
			o.err = err
			continue
		}
		if at != nil {
			at(p)
		}
		o.signals = append(o.signals, p)
		switch p := p.(type) {
		case signal.TextDelta:
			o.text += p.Content
		case signal.ToolResult:
			o.tools = append(o.tools, p)
		case signal.Completion:
			o.ended = true
		}
	}
	return o
}

// asking runs a turn beside the test; in a bubble.
func asking(ctx context.Context, e turn.Engine, req turn.Request) <-chan told {
	out := make(chan told, 1)
	go func() { out <- ask(ctx, e, req, nil) }()
	synctest.Wait()
	return out
}

func folder(dir, suite, id string) string {
	return filepath.Join(dir, ".asterisk", "calibrate", suite, id)
}

// signalOf reads the signal of a case of the suite 1.
func signalOf(t *testing.T, dir, id string) dispatch.Signal {
	t.Helper()
	return signalIn(t, folder(dir, suite, id))
}

func signalIn(t *testing.T, folder string) dispatch.Signal {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "signal.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s dispatch.Signal
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// put writes a file as somebody else would, folders and all.
func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// putSignal writes a signal.json.
func putSignal(t *testing.T, folder string, s dispatch.Signal) {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(folder, "signal.json"), string(b))
}

func wrapped(id int64, data string) string {
	return fmt.Sprintf(`{"dispatch_id": %d, "data": %s}`, id, data)
}
