package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nhooyr.io/websocket"
)

// How many gateways there are, how often each is killed, and how many clients talk to it meanwhile.
const (
	gateways = 2
	kills    = 100
	talkers  = 8
)

// TestKilledAtRandomMoments kills gateways while clients talk to them, starts them again on the same folder and port, and
// has every client resume: each sees its events once, in order, without a gap, from the first to the last.
func TestKilledAtRandomMoments(t *testing.T) {
	for i := range gateways {
		t.Run(fmt.Sprintf("gateway %d", i+1), func(t *testing.T) {
			t.Parallel() // there is a processor for each, and one that is killed waits now and then
			killedAtRandomMoments(t, uint64(i+1))
		})
	}
}

func killedAtRandomMoments(t *testing.T, seed uint64) {
	dir := t.TempDir()
	args := []string{"--data", filepath.Join(dir, "data"), "--pace", "5ms", "--log-level", "error", "--speech-model", dir}
	addr := freeAddress(t)
	g := serveAt(t, addr, args...)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	clients := make([]*talker, talkers)
	for i := range clients {
		c := &talker{addr: addr, n: i}
		clients[i] = c
		wg.Go(func() {
			if err := c.talk(ctx, stop); err != nil {
				t.Errorf("client %d after %d events and %d resumes: %v", c.n, c.seq, c.resumes, err)
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	for range kills {
		wait(ctx, time.Duration(20+rng.IntN(200))*time.Millisecond)
		_ = g.cmd.Process.Kill()
		_ = g.cmd.Wait()
		g = serveAt(t, addr, args...)
	}
	close(stop)
	wg.Wait()
	events, resumes, interrupted := 0, 0, 0
	for _, c := range clients {
		events, resumes, interrupted = events+int(c.seq), resumes+c.resumes, interrupted+c.interrupted
	}
	t.Logf("%d kills, %d resumes, %d events, %d turns broken off", kills, resumes, events, interrupted)
	if resumes < kills || interrupted == 0 {
		t.Errorf("%d resumes and %d interrupted turns in %d kills: it was not under load", resumes, interrupted, kills)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// freeAddress is a port of loopback that nobody listens on, and none of those that systems give to who does not choose.
func freeAddress(t *testing.T) string {
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// talker is a client of version 2 that has one turn after the other, and resumes whenever its connection breaks.
type talker struct {
	addr string
	n    int

	token       string
	seq         uint64 // of the last event
	open        string // the answer that has begun and not ended
	state       string
	resumes     int
	interrupted int
}

type envelope struct {
	Type    string `json:"type"`
	Seq     uint64 `json:"seq"`
	Payload struct {
		ResumeToken string `json:"resumeToken"`
		Recovered   bool   `json:"recovered"`
		LastSeq     uint64 `json:"lastSeq"`
		Value       string `json:"value"`
		ResponseID  string `json:"responseId"`
		Code        string `json:"code"`
		Message     string `json:"message"`
	} `json:"payload"`
}

func (c *talker) talk(ctx context.Context, stop <-chan struct{}) error {
	for {
		ws, _, err := websocket.Dial(ctx, "ws://"+c.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{"vela.v2"}})
		if err == nil {
			err = c.converse(ctx, ws, stop)
			_ = ws.CloseNow()
		}
		var wrong *violation
		switch {
		case err == nil:
			return nil
		case errors.As(err, &wrong):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("never came back: %w", err)
		}
		wait(ctx, 20*time.Millisecond) // it is being restarted
	}
}

// violation is what must not happen; any other error is a connection that was cut.
type violation struct{ what string }

func (v *violation) Error() string { return v.what }

func (c *talker) converse(ctx context.Context, ws *websocket.Conn, stop <-chan struct{}) error {
	hello := `{"type":"session.start","payload":{"turns":"deterministic"}}`
	if c.token != "" {
		hello = fmt.Sprintf(`{"type":"session.resume","payload":{"token":%q,"after":%d}}`, c.token, c.seq)
	}
	if err := ws.Write(ctx, websocket.MessageText, []byte(hello)); err != nil {
		return err
	}
	asked := false
	for {
		_, frame, err := ws.Read(ctx)
		if err != nil {
			if code := websocket.CloseStatus(err); code == 4006 {
				return &violation{"the session is gone"}
			}
			return err
		}
		if err := c.take(frame); err != nil {
			return err
		}
		if c.state != "idle" {
			asked = false
			continue
		}
		select {
		case <-stop:
			return nil
		default:
		}
		if !asked {
			asked = true
			if err := ws.Write(ctx, websocket.MessageText, []byte(`{"type":"mocked.turn.trigger","payload":{}}`)); err != nil {
				return err
			}
		}
	}
}

// take checks one message against what went before.
func (c *talker) take(frame []byte) error {
	var e envelope
	if err := json.Unmarshal(frame, &e); err != nil {
		return &violation{err.Error()}
	}
	if e.Type == "session.ready" {
		return c.ready(e)
	}
	if e.Seq == 0 {
		if e.Payload.Code == "mocked_turn_in_flight" || strings.HasPrefix(e.Type, "session.state") {
			return nil
		}
		return &violation{"without a number: " + string(frame)}
	}
	if e.Seq != c.seq+1 {
		return &violation{fmt.Sprintf("number %d follows %d: %s", e.Seq, c.seq, frame)}
	}
	c.seq = e.Seq
	switch e.Type {
	case "session.state":
		c.state = e.Payload.Value
	case "response.created":
		if c.open != "" {
			return &violation{c.open + " had no end"}
		}
		c.open = e.Payload.ResponseID
	case "response.completed", "response.cancelled":
		if c.open != e.Payload.ResponseID {
			return &violation{fmt.Sprintf("%q ends, %q is open", e.Payload.ResponseID, c.open)}
		}
		c.open = ""
	case "error":
		if e.Payload.Code != "turn_interrupted" {
			return &violation{string(frame)}
		}
		c.interrupted++
	}
	return nil
}

func (c *talker) ready(e envelope) error {
	if c.token == "" {
		c.token = e.Payload.ResumeToken
		return nil
	}
	c.resumes++
	if !e.Payload.Recovered || e.Payload.LastSeq < c.seq {
		return &violation{fmt.Sprintf("not recovered: it has %d events, this client had %d", e.Payload.LastSeq, c.seq)}
	}
	return nil
}
