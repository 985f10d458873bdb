package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"vela/gateway/client"
	"vela/protocol/signal"
	"vela/turn/stream"
)

type tailCmd struct {
	Type     []string `help:"Show signals of this type alone, such as tool_call or user.*; may be repeated." placeholder:"TYPE"`
	Source   []string `help:"Show signals of this source alone, by its id or by what its signals call it, such as remote:1, adapter:tap or session:*; may be repeated." placeholder:"SOURCE"`
	Since    bool     `help:"Begin with what the gateway has kept, the last 10,000 signals at most."`
	Internal bool     `help:"Show heartbeats and cron jobs, too."`
	JSON     bool     `name:"json" help:"Print each signal as a line of JSON."`
	Color    string   `help:"Colour each source: auto does on a terminal, unless NO_COLOR is set." enum:"auto,always,never" default:"auto"`
	URL      string   `help:"Gateway to follow." default:"127.0.0.1:8080" env:"VELA_URL"`
}

// again is how long tail waits before it takes up a stream that broke.
const again = time.Second

// Run prints signals until it is told to stop. A gateway that goes away and comes back is followed on, from where it was.
func (c *tailCmd) Run(ctx context.Context, s streams) error {
	g, err := toGateway(c.URL)
	if err != nil {
		return err
	}
	f := &follower{tailCmd: c, gateway: g, streams: s, colours: c.colours(s.out)}
	if c.Since {
		f.place = new(string)
	}
	for connected := false; ; {
		err := f.follow(ctx)
		connected = connected || f.connected
		var refused *client.DialError
		switch {
		case ctx.Err() != nil:
			return nil
		case !connected, errors.As(err, &refused):
			return err
		case err != nil:
			fmt.Fprintf(s.err, "vela: the stream broke; it is taken up again\n")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

func (c *tailCmd) colours(out io.Writer) bool {
	if c.Color != "auto" {
		return c.Color == "always"
	}
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

type follower struct {
	*tailCmd
	gateway   plainGateway
	streams   streams
	colours   bool
	place     *string // nil: from now on
	connected bool
}

// follow reads one event stream to its end.
func (f *follower) follow(ctx context.Context) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	if f.place != nil {
		header["Last-Event-Id"] = []string{*f.place}
	}
	resp, err := f.gateway.do(ctx, http.MethodGet, "/__signals__/stream", nil, header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		return fmt.Errorf("%s streams no signals: is it a gateway of this version? (%s)", f.gateway.address.Host(), resp.Status)
	}
	f.connected = true
	for e, err := range stream.Events(resp.Body) {
		if err != nil {
			return err
		}
		if e.ID != "" {
			place := e.ID
			f.place = &place
		}
		if err := f.show(e.Data); err != nil {
			return err
		}
	}
	return errors.New("the gateway ended the stream")
}

// show prints one signal, if it is among those to be shown.
func (f *follower) show(text []byte) error {
	var r signal.Raw
	if json.Unmarshal(text, &r) != nil || !f.wants(r) {
		return nil
	}
	if f.JSON {
		_, err := fmt.Fprintln(f.streams.out, printable(string(text)))
		return err
	}
	open, end := "", ""
	if f.colours {
		open, end = colourOf(r.Source), "\x1b[0m"
	}
	at := time.UnixMilli(r.Timestamp).Format("15:04:05.000")
	_, err := fmt.Fprintf(f.streams.out, "%s %s%s%s %s %s\n", at, open, printable(r.Source), end, printable(r.Type), printable(string(r.Payload)))
	return err
}

func (f *follower) wants(r signal.Raw) bool {
	through := sourceOf(r.Metadata)
	return matches(f.Type, r.Type) && (matches(f.Source, r.Source) || through != "" && matches(f.Source, through)) && (f.Internal || !isInternal(r.Payload))
}

// matches compares a name with patterns, of which a star at the end stands for anything. No pattern takes all.
func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		begin, open := strings.CutSuffix(p, "*")
		return p == name || open && strings.HasPrefix(name, begin)
	})
}

// sourceOf is the id of the source that a signal came through; empty if it came through none.
func sourceOf(metadata json.RawMessage) string {
	var m struct {
		SourceID string `json:"sourceId"`
	}
	_ = json.Unmarshal(metadata, &m) // what is none names no source
	return m.SourceID
}

// isInternal says whether a payload is marked as one of an agent's own working.
func isInternal(payload json.RawMessage) bool {
	var p struct {
		Meta struct {
			Heartbeat bool `json:"heartbeat"`
			Cron      bool `json:"cron"`
		} `json:"_meta"`
	}
	return json.Unmarshal(payload, &p) == nil && (p.Meta.Heartbeat || p.Meta.Cron)
}

// colourOf is the same for the same source.
func colourOf(source string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(source)) // it never fails
	return fmt.Sprintf("\x1b[%dm", 31+h.Sum32()%6)
}

// printable keeps what a source says from speaking to the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\ufffd'
		}
		return r
	}, text)
}
