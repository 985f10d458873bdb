package script

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"vela/gateway/client"
)

// options are what a connect step may ask for.
type options struct {
	turns     string
	origin    string
	protocols []string
	refused   int // the status that the handshake has to end with, 0 for an upgrade
}

const howToConnect = "write connect, and of these what is needed: as b, turns=agent, origin=https://example.org, protocol=vela.v1, refused=403"

var connectionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// connect parses the step and makes the connection known.
func (p *parser) connect(words []string) (action, error) {
	name, o := "", options{}
	for i := 0; i < len(words); i++ {
		if words[i] == "as" && i+1 < len(words) {
			i++
			name = words[i]
			continue
		}
		if err := o.set(words[i]); err != nil {
			return nil, err
		}
	}
	if name != "" && !connectionName.MatchString(name) {
		return nil, fmt.Errorf("%q is no name of a connection: use letters, digits, - and _", name)
	}
	if name == "" && p.implied {
		return nil, errors.New("there is a connection without a name already: write connect before the first step, or give it a name with as")
	}
	if o.refused == 0 {
		p.known[name] = true
	}
	return connect(name, o), nil
}

// set takes one key=value.
func (o *options) set(word string) error {
	key, value, _ := strings.Cut(word, "=")
	if value == "" {
		return fmt.Errorf("%q is no option of connect: %s", word, howToConnect)
	}
	switch key {
	case "turns":
		o.turns = value
	case "origin":
		o.origin = value
	case "protocol":
		o.protocols = strings.Split(value, ",")
	case "refused":
		status, err := strconv.Atoi(value)
		if err != nil || status < 200 || status > 599 {
			return fmt.Errorf("%q is no HTTP status: write refused=403, say", value)
		}
		o.refused = status
	default:
		return fmt.Errorf("%q is no option of connect: %s", word, howToConnect)
	}
	return nil
}

// connect plays the step.
func connect(name string, o options) action {
	return func(ctx context.Context, p *player) error {
		if old := p.conns[name]; old != nil && old.end == nil {
			old.client.Drop()
		}
		var tcp net.Conn
		dialer := net.Dialer{}
		ctx, cancel := context.WithTimeout(ctx, p.patience())
		defer cancel()
		c, err := client.Dial(ctx, p.gateway.Address, client.Options{
			Token: p.gateway.Token,
			Turns: o.turns, Subprotocols: o.protocols, Header: o.header(),
			DialContext: func(ctx context.Context, network, address string) (_ net.Conn, err error) {
				tcp, err = dialer.DialContext(ctx, network, address)
				return tcp, err
			},
		})
		if o.refused != 0 {
			return o.checkRefused(c, err)
		}
		if err != nil {
			return err
		}
		p.note(name, "connected")
		p.attach(name, c, tcp)
		if len(o.protocols) > 0 && c.Subprotocol() == "" {
			return fmt.Errorf("offered   %s\ngot       no subprotocol", strings.Join(o.protocols, ", "))
		}
		return nil
	}
}

func (o options) header() http.Header {
	h := http.Header{}
	if o.origin != "" {
		h.Set("Origin", o.origin)
	}
	return h
}

func (o options) checkRefused(c *client.Client, err error) error {
	if err == nil {
		c.Drop()
		return fmt.Errorf("expected  a refusal with status %d\ngot       a connection", o.refused)
	}
	var refusal *client.DialError
	if !errors.As(err, &refusal) || refusal.Status != o.refused {
		return fmt.Errorf("expected  a refusal with status %d\ngot       %w", o.refused, err)
	}
	return nil
}
