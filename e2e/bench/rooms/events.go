//go:build cgo && opus

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"vela/e2e/bench/proc"
)

const (
	eventTurns = 60 // with as many calls as toolCalls each
	eventWait  = 20 * time.Second
	bareEvery  = 5 * time.Millisecond
)

// events measures how soon a tool that an agent's model calls is shown to who is in the room, from the model's word to the
// packet, and how many events a second go out. The floor is a packet of the same size from one person to another.
func events(vela *proc.Process, _ *services, _ *speech) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ann, err := enter(ctx, vela.Addr, "events", "ann", nil)
	if err != nil {
		return err
	}
	defer ann.room.Disconnect()
	bob, err := enter(ctx, vela.Addr, "events", "bob", nil)
	if err != nil {
		return err
	}
	defer bob.room.Disconnect()
	if err := ann.send(topicEvents, `{"type":"tts-mode","value":"off"}`); err != nil {
		return err
	}
	var tools []time.Duration
	for range eventTurns {
		took, err := ann.asksForTools()
		if err != nil {
			return err
		}
		tools = append(tools, took...)
	}
	if err := ann.send(topicEvents, `{"type":"text_message","text":"`+askFlood+`"}`); err != nil {
		return err
	}
	rate, err := ann.rateOf("content")
	if err != nil {
		return err
	}
	bare, bareRate, err := between(bob, ann)
	if err != nil {
		return err
	}
	fmt.Printf("from a model's call of a tool to the packet that shows it in the room, %d calls, and events a second\n", len(tools))
	fmt.Printf("  bare   p50 %6.2f ms, p99 %6.2f ms, %8.0f/s, from one person to another\n", ms(percentile(bare, 0.5)), ms(percentile(bare, 0.99)), bareRate)
	fmt.Printf("  vela   p50 %6.2f ms, p99 %6.2f ms, %8.0f/s, text and content for each piece of an answer\n", ms(percentile(tools, 0.5)), ms(percentile(tools, 0.99)), rate)
	fmt.Printf("  ratio  %8.2f times the bare p50, %.2f times the p99, %.2f of the events\n\n",
		ms(percentile(tools, 0.5))/ms(percentile(bare, 0.5)), ms(percentile(tools, 0.99))/ms(percentile(bare, 0.99)), rate/bareRate)
	return nil
}

// next waits for an object of a type.
func (p *person) next(kind string) (shown, error) {
	late := time.NewTimer(eventWait)
	defer late.Stop()
	for {
		select {
		case s := <-p.shown:
			if s.Type == kind {
				return s, nil
			}
		case <-late.C:
			return shown{}, errors.New("nothing more was shown: " + kind)
		}
	}
}

// asksForTools has one turn.
func (p *person) asksForTools() (took []time.Duration, err error) {
	if err := p.send(topicEvents, `{"type":"text_message","text":"`+askTools+`"}`); err != nil {
		return nil, err
	}
	for len(took) < toolCalls {
		s, err := p.next("status")
		if err != nil {
			return nil, err
		}
		if since, is := s.since(); is {
			took = append(took, since)
		}
	}
	_, err = p.next("content") // the answer
	return took, err
}

// since is how long ago it was sent, if it says so.
func (s shown) since() (time.Duration, bool) {
	text, is := strings.CutPrefix(s.Detail, "at-")
	sent, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(s.at.UnixNano() - sent), is && err == nil
}

// rateOf counts as many events of a type as a flood has, and says how many came a second.
func (p *person) rateOf(kind string) (float64, error) {
	var first time.Time
	for n := 1; ; n++ {
		s, err := p.next(kind)
		if err != nil {
			return 0, fmt.Errorf("after %d: %w", n-1, err)
		}
		if n == 1 {
			first = s.at
		}
		if n == floodPieces {
			return float64(n-1) / s.at.Sub(first).Seconds(), nil
		}
	}
}

// between measures packets from one person to another, one by one, and then as many as a flood has.
func between(from, to *person) (took []time.Duration, rate float64, err error) {
	object := func(kind string) string {
		return fmt.Sprintf(`{"type":%q,"action":"reading_file","detail":"at-%d","startedAt":1766318400123}`, kind, time.Now().UnixNano())
	}
	for range eventTurns * toolCalls {
		if err := from.send(topicBare, object("one")); err != nil {
			return nil, 0, err
		}
		s, err := to.next("one")
		if err != nil {
			return nil, 0, err
		}
		since, _ := s.since()
		took = append(took, since)
		time.Sleep(bareEvery)
	}
	for range floodPieces {
		if err := from.send(topicBare, object("many")); err != nil {
			return nil, 0, err
		}
	}
	rate, err = to.rateOf("many")
	return took, rate, err
}
