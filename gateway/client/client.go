// Package client is the protocol's client in Go: it connects to a gateway, sends a client's events and receives the
// gateway's.
//
// Start at [Dial]. The gateway speaks first: [Client.Ready] waits for its greeting. Then events go both ways, or
// [Client.Say] carries one whole turn of speech:
//
//	c, err := client.Dial(ctx, "127.0.0.1:8080", client.Options{Turns: "agent"})
//	reply, err := c.Say(ctx, samples, client.SayOptions{})
//	err = c.Close()
//
// Send, SendRaw and SendBinary may be called from any goroutine, at any time. Ready, Receive, ReceiveRaw and Say read:
// one goroutine at a time calls one of them. A connection's end is a [*CloseError]. When the context of a call ends
// in the middle of it, the connection is gone too, since half a message may have been sent.
//
// The package leaves no goroutine behind a connection that is closed with [Client.Close] or [Client.Drop].
package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"vela/protocol"
)

// Options is how to connect. Its zero value works.
type Options struct {
	// Turns is what is asked for as ?turns=: "deterministic", "agent", or empty for what the gateway does by itself.
	Turns string
	// Subprotocols are offered in the handshake, such as "vela.v1"; without any, the gateway speaks version 1.
	Subprotocols []string
	// Header goes with the handshake, for an Origin or an Authorization.
	Header http.Header
	// DialContext replaces the way to the gateway; nil is a [net.Dialer].
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client is one connection to a gateway.
type Client struct {
	socket *socket

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
	return &Client{socket: s}, nil
}

// Subprotocol is the one that the gateway chose of those offered; empty if none.
func (c *Client) Subprotocol() string { return c.socket.subprotocol() }

// SessionID is the session's id, once the gateway has said it. Only for the goroutine that reads.
func (c *Client) SessionID() string { return c.sessionID }

// State is the session's phase as last received, empty before the greeting. Only for the goroutine that reads.
func (c *Client) State() protocol.State { return c.state }

// Send sends one event.
func (c *Client) Send(ctx context.Context, m protocol.Message) error {
	return c.socket.write(ctx, protocol.Encode(m), false)
}

// SendRaw sends a text message as it is, event or not.
func (c *Client) SendRaw(ctx context.Context, text []byte) error {
	return c.socket.write(ctx, text, false)
}

// SendBinary sends a binary message, which version 1 refuses.
func (c *Client) SendBinary(ctx context.Context, data []byte) error {
	return c.socket.write(ctx, data, true)
}

// Raw is one message as it came.
type Raw struct {
	Data   []byte
	Binary bool
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
	for {
		raw, err := c.ReceiveRaw(ctx)
		if err != nil {
			return nil, err
		}
		m, err := protocol.Decode(raw.Data, protocol.Server)
		switch {
		case raw.Binary:
			return nil, fmt.Errorf("client: the gateway sent a binary message of %d bytes", len(raw.Data))
		case err == nil:
			c.note(m)
			return m, nil
		case !unknown(raw.Data):
			return nil, fmt.Errorf("client: the gateway sent no event: %w", err)
		}
	}
}

// Ready waits for the gateway's greeting, session.ready and session.state, and returns the session's id; at once when
// they have been received. An error event before them is returned as an [*EventError].
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
	case protocol.SessionState:
		c.state = m.Value
	}
}

// unknown says whether a message is a whole envelope whose type this client has never heard of.
func unknown(text []byte) bool {
	var envelope struct {
		Type    *string
		Payload map[string]json.RawMessage
	}
	if json.Unmarshal(text, &envelope) != nil || envelope.Type == nil || envelope.Payload == nil {
		return false
	}
	for _, e := range protocol.Events() {
		if e.Type == *envelope.Type {
			return false
		}
	}
	return true
}
