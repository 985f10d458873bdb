//go:build cgo && opus

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nhooyr.io/websocket"

	"vela/e2e/bench/proc"
)

const (
	delayWarm   = 2 // turns: the server sends silence on a track that is new
	delayTurns  = 12
	delayPause  = 3 * time.Second // after which the next is said
	delayAnswer = time.Second
	socketStart = `{"type":"session.start","payload":{"turns":"agent","turnDetection":"vad","audio":{` +
		`"input":{"encoding":"pcm16","rate":16000,"framing":"binary"},"output":{"encoding":"pcm16","rate":16000,"framing":"binary"}}}}`
)

// delays are the two ways of sound in each turn: from the last of what a person says to the recogniser, which has the
// wait for the end of speech in it, and from the voice to the person.
type delays struct{ in, out []time.Duration }

// delay measures what the way through a room adds to sound. The floor is the same conversation on a socket.
func delay(vela *proc.Process, s *services, mic *speech) error {
	if err := s.says(delayAnswer); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	socket, err := converse(ctx, s, func(ctx context.Context, last, sound chan time.Time) error {
		return overSocket(ctx, vela.Addr, mic, last, sound)
	})
	if err != nil {
		return fmt.Errorf("the socket: %w", err)
	}
	room, err := converse(ctx, s, func(ctx context.Context, last, sound chan time.Time) error {
		return overRoom(ctx, vela.Addr, mic, last, sound)
	})
	if err != nil {
		return fmt.Errorf("the room: %w", err)
	}
	fmt.Printf("sound through a room and on a socket, %d turns\n", delayTurns)
	for _, way := range []struct {
		name         string
		socket, room []time.Duration
	}{{"from the end of speech to the recogniser", socket.in, room.in}, {"from the voice to who hears it", socket.out, room.out}} {
		bare, vela := percentile(way.socket, 0.5), percentile(way.room, 0.5)
		fmt.Printf("  %-42s socket p50 %7.1f ms, room p50 %7.1f ms: %+.1f ms\n", way.name, ms(bare), ms(vela), ms(vela-bare))
	}
	fmt.Println()
	return nil
}

// converse has some turns. talk says when the last of what was said went out, and when the first sound came back.
func converse(ctx context.Context, s *services, talk func(ctx context.Context, last, sound chan time.Time) error) (d delays, err error) {
	ctx, cancel := context.WithCancel(ctx)
	last, sound, ended := make(chan time.Time, 64), make(chan time.Time, 64), make(chan error, 1)
	go func() { ended <- talk(ctx, last, sound) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	steps := []chan time.Time{last, s.heard, s.spoke, sound}
	for turn := range delayWarm + delayTurns {
		for _, of := range steps { // what is of the turn before
			for len(of) > 0 {
				<-of
			}
		}
		var at [4]time.Time
		for i, of := range steps {
			select {
			case at[i] = <-of:
			case <-time.After(eventWait):
				return d, fmt.Errorf("turn %d: it went no further than step %d", turn+1, i)
			}
		}
		if turn >= delayWarm {
			d.in, d.out = append(d.in, at[1].Sub(at[0])), append(d.out, at[3].Sub(at[2]))
		}
	}
	return d, nil
}

// overRoom talks in a room.
func overRoom(ctx context.Context, gateway string, mic *speech, last, sound chan time.Time) error {
	p, err := enter(ctx, gateway, "delay", "ann", sound)
	if err != nil {
		return err
	}
	defer p.room.Disconnect()
	return pace(ctx, mic.packets, mic.silence, delayPause, p.utter, func() { tell(last) })
}

// overSocket talks on a socket. It breaks each answer off at its first sound.
func overSocket(ctx context.Context, gateway string, mic *speech, last, sound chan time.Time) error {
	c, _, err := websocket.Dial(ctx, "ws://"+gateway+"/ws", &websocket.DialOptions{Subprotocols: []string{"vela.v2"}})
	if err != nil {
		return err
	}
	defer c.CloseNow()
	c.SetReadLimit(1 << 20)
	if err := c.Write(ctx, websocket.MessageText, []byte(socketStart)); err != nil {
		return err
	}
	reading := make(chan error, 1)
	go func() {
		answering := time.Time{}
		for {
			kind, _, err := c.Read(ctx)
			if err != nil {
				reading <- err
				return
			}
			if now := time.Now(); kind == websocket.MessageBinary && now.Sub(answering) > delayPause/2 {
				answering = now
				tell(sound)
				if err := c.Write(ctx, websocket.MessageText, []byte(`{"type":"response.cancel","payload":{}}`)); err != nil {
					reading <- err
					return
				}
			}
		}
	}()
	err = pace(ctx, mic.pcm, mic.hush, delayPause, func(b []byte) error { return c.Write(ctx, websocket.MessageBinary, b) }, func() { tell(last) })
	_ = c.CloseNow()
	if why := <-reading; ctx.Err() == nil {
		return errors.Join(err, why)
	}
	return nil
}
