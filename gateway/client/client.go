// Package client is the protocol's client in Go: it connects to a gateway, sends a client's events and receives the
// gateway's.
//
// Start at [Dial], one connection, or at [Converse], a session that outlives its connections. In version 1 the gateway
// speaks first, in version 2 the client does, with [Client.Start] or [Client.Resume]; Start waits for the greeting in
// either. Then events go both ways, or [Client.Say] carries one whole turn of speech:
//
//	c, err := client.Dial(ctx, "127.0.0.1:8080", client.Options{Subprotocols: []string{client.Version2, client.Version1}})
//	ready, err := c.Start(ctx, protocol.SessionStart{Turns: "agent"})
//	reply, err := c.Say(ctx, samples, client.SayOptions{})
//	err = c.Close()
//
// Signals are followed and emitted by sending [protocol.SignalSubscribe], [protocol.SignalUnsubscribe] and
// [protocol.SignalEmit]; what is followed comes as [protocol.Signal].
//
// What sends may be called from any goroutine, at any time. Start, Resume, Ready, Receive, ReceiveEnvelope, ReceiveRaw
// and Say read: one goroutine at a time calls one of them. A connection's end is a [*CloseError]. When the context of a
// call ends in the middle of it, the connection is gone too, since half a message may have been sent.
//
// The package leaves no goroutine behind a connection that is closed with [Client.Close] or [Client.Drop], and none
// behind a call of a [Conversation].
package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"vela/protocol"
	"vela/session/speech"
)

// The subprotocols to offer, one a version of the protocol. Of those offered a gateway takes the highest that it knows.
const (
	Version1 = "vela.v1"
	Version2 = "vela.v2"
)

// Options is how to connect. Its zero value works.
type Options struct {
	// Turns is what is asked for as ?turns=: "deterministic", "agent", or empty for what the gateway does by itself.
	Turns string
	// Subprotocols are offered in the handshake, such as [Version2]; without any, the gateway speaks version 1.
	Subprotocols []string
	// Token says who we are. It goes as Authorization: Bearer, never in an address, and stands in no error.
	Token string
	// Header goes with the handshake, for an Origin or an Authorization.
	Header http.Header
	// Codec encodes what [Client.SendAudio] sends where Opus was agreed on.
	Codec speech.Codec
	// DialContext replaces the way to the gateway; nil is a [net.Dialer].
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client is one connection to a gateway.
type Client struct {
	socket  *socket
	version int // of the protocol
	packets packer
	terms   atomic.Pointer[protocol.Terms] // nil before a greeting of version 2

	// Owned by whoever reads.
	sessionID string
	state     protocol.State // empty before the greeting
}

// Dial connects to the gateway at an address that [ParseAddress] takes. Its error tells a person what to do; one that
// comes from the gateway or the way there is a [*DialError].
func Dial(ctx context.Context, address string, o Options) (*Client, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	s, err := dialSocket(ctx, a, o)
	if err != nil {
		return nil, err
	}
	c := &Client{socket: s, version: 1, packets: packer{codec: o.Codec}}
	if s.subprotocol() == Version2 {
		c.version = 2
	}
	return c, nil
}

// Version is that of the protocol, 1 or 2.
func (c *Client) Version() int { return c.version }

// Terms is what the gateway last said to be in force; the zero value before that, and in version 1. It may be called
// from any goroutine.
func (c *Client) Terms() protocol.Terms {
	if t := c.terms.Load(); t != nil {
		return *t
	}
	return protocol.Terms{}
}

// Subprotocol is the one that the gateway chose of those offered; empty if none.
func (c *Client) Subprotocol() string { return c.socket.subprotocol() }

// SessionID is the session's id, once the gateway has said it. Only for the goroutine that reads.
func (c *Client) SessionID() string { return c.sessionID }

// State is the session's phase as last received, empty before the greeting. Only for the goroutine that reads.
func (c *Client) State() protocol.State { return c.state }

// Send sends one event.
func (c *Client) Send(ctx context.Context, m protocol.Message) error {
	return c.SendEnvelope(ctx, protocol.Envelope{Message: m})
}

// SendEnvelope sends one event with an id, which the error that it causes names in its Ref. Version 1 has no ids.
func (c *Client) SendEnvelope(ctx context.Context, e protocol.Envelope) error {
	if c.version == 1 {
		return c.socket.write(ctx, protocol.Encode(e.Message), false)
	}
	return c.socket.write(ctx, protocol.AppendEnvelope(nil, e), false)
}

// SendAudio sends a piece of speech, mono samples at the rate that was agreed ([speech.Rate], unless the settings said
// otherwise): as a binary message where that was agreed on, else as input_audio.append. Where Opus was, it is as many
// packets as it takes, the last one filled up with silence: pieces of [speech.PacketLength] need none.
func (c *Client) SendAudio(ctx context.Context, samples []int16) error {
	format := protocol.Format{}
	if t := c.terms.Load(); t != nil && t.Audio.Input != nil {
		format = *t.Audio.Input
	}
	messages := [][]byte{speech.Bytes(samples)}
	if format.Encoding == "opus" {
		var err error
		if messages, err = c.packets.pack(samples, format.Rate); err != nil {
			return err
		}
	}
	for _, m := range messages {
		if err := c.sendSound(ctx, m, format.Framing == "binary"); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) sendSound(ctx context.Context, sound []byte, binary bool) error {
	if binary {
		return c.SendBinary(ctx, sound)
	}
	return c.Send(ctx, protocol.InputAudioAppend{Chunk: base64.StdEncoding.EncodeToString(sound)})
}

// SendRaw sends a text message as it is, event or not.
func (c *Client) SendRaw(ctx context.Context, text []byte) error {
	return c.socket.write(ctx, text, false)
}

// SendBinary sends a binary message. Version 1 refuses it; in version 2 it is audio, if that was agreed on.
func (c *Client) SendBinary(ctx context.Context, data []byte) error {
	return c.socket.write(ctx, data, true)
}

// Raw is one message as it came.
type Raw struct {
	Data   []byte // the caller's own
	Binary bool   // whether it is a binary message; else a text
}

// ReceiveRaw waits for the next message, whatever it is. The end of the connection is a [*CloseError].
func (c *Client) ReceiveRaw(ctx context.Context) (Raw, error) {
	data, binary, err := c.socket.read(ctx)
	return Raw{data, binary}, err
}

// Receive waits for the next event. The contract grows by events that are added, so one that this client does not know
// is passed over; a message that is no event at all is an error which the connection survives. The end of the
// connection is a [*CloseError].
func (c *Client) Receive(ctx context.Context) (protocol.Message, error) {
	e, err := c.ReceiveEnvelope(ctx)
	return e.Message, err
}

// ReceiveEnvelope is [Client.Receive] with what stands beside the event in version 2. What is passed over leaves a gap in
// the numbers.
func (c *Client) ReceiveEnvelope(ctx context.Context) (protocol.Envelope, error) {
	for {
		raw, err := c.ReceiveRaw(ctx)
		if err != nil {
			return protocol.Envelope{}, err
		}
		e, err := c.decode(raw.Data)
		switch {
		case raw.Binary:
			return protocol.Envelope{}, fmt.Errorf("client: the gateway sent a binary message of %d bytes", len(raw.Data))
		case err == nil:
			c.note(e.Message)
			return e, nil
		case !unknown(raw.Data, c.version):
			return protocol.Envelope{}, fmt.Errorf("client: the gateway sent no event: %w", err)
		}
	}
}

func (c *Client) decode(text []byte) (protocol.Envelope, error) {
	if c.version == 1 {
		m, err := protocol.Decode(text, protocol.Server)
		return protocol.Envelope{Message: m}, err
	}
	return protocol.DecodeEnvelope(text, protocol.Server)
}

// Start begins a session with these settings, and waits for session.ready. In version 1, which has no settings, it only
// waits. What the gateway refuses is an [*EventError]; the connection stays, and Start may be tried again.
func (c *Client) Start(ctx context.Context, settings protocol.SessionStart) (protocol.SessionReady, error) {
	if c.version == 1 {
		id, err := c.Ready(ctx)
		return protocol.SessionReady{SessionID: id}, err
	}
	return c.greet(ctx, settings)
}

// Resume takes up the session that the token belongs to, from another connection; after is the last Seq that was
// received. Where the answer says Recovered, exactly the events that follow it come next. A session that is gone is an
// [*EventError] with [protocol.CodeSessionGone].
func (c *Client) Resume(ctx context.Context, token string, after uint64) (protocol.SessionReady, error) {
	if c.version == 1 {
		return protocol.SessionReady{}, ErrVersion1
	}
	return c.greet(ctx, protocol.SessionResume{Token: token, After: after})
}

// greet says the first word of version 2 and waits for the answer to it.
func (c *Client) greet(ctx context.Context, m protocol.Message) (protocol.SessionReady, error) {
	if err := c.Send(ctx, m); err != nil {
		return protocol.SessionReady{}, err
	}
	for {
		got, err := c.Receive(ctx)
		if err != nil {
			return protocol.SessionReady{}, err
		}
		switch got := got.(type) {
		case protocol.SessionReady:
			return got, nil
		case protocol.Error:
			return protocol.SessionReady{}, &EventError{got}
		}
	}
}

// Ping asks for a sign of life and waits for it. It may be called from any goroutine, while another one receives.
func (c *Client) Ping(ctx context.Context) error { return c.socket.ping(ctx) }

// Ready waits for the gateway's greeting, session.ready and session.state, and returns the session's id; at once when
// they have been received. In version 2, [Client.Start] or [Client.Resume] comes before it. An error event before them is returned as an [*EventError].
func (c *Client) Ready(ctx context.Context) (sessionID string, err error) {
	for c.sessionID == "" || c.state == "" {
		m, err := c.Receive(ctx)
		if err != nil {
			return "", err
		}
		if e, ok := m.(protocol.Error); ok {
			return "", &EventError{e}
		}
	}
	return c.sessionID, nil
}

// Close ends the connection with the close handshake. It waits for the gateway's half of it, 5 s at most, and wakes
// whoever reads.
func (c *Client) Close() error { return c.socket.close() }

// Drop cuts the connection without a word, as a lost network does, and wakes whoever reads.
func (c *Client) Drop() { c.socket.drop() }

// note keeps what the session says about itself.
func (c *Client) note(m protocol.Message) {
	switch m := m.(type) {
	case protocol.SessionReady:
		c.sessionID = m.SessionID
		if c.version == 2 && m.Terms != nil {
			c.terms.Store(m.Terms)
		}
	case protocol.SessionState:
		c.state = m.Value
	}
}

// unknown says whether a message is a whole envelope of a type that the version, as far as this client knows, has not.
func unknown(text []byte, version int) bool {
	var envelope struct {
		Type    *string
		Payload map[string]json.RawMessage
	}
	if json.Unmarshal(text, &envelope) != nil || envelope.Type == nil || envelope.Payload == nil {
		return false
	}
	for _, e := range protocol.Events() {
		if e.Type == *envelope.Type && e.Since <= version {
			return false
		}
	}
	return true
}
