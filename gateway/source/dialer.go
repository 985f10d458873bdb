package source

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"vela/protocol/signal"
	"vela/turn/openclaw"
)

// Times of a connection in the making.
const (
	dialTime   = 5 * time.Second  // for the connection
	answerTime = 15 * time.Second // until the other side has answered it
	hooksTime  = 2 * time.Second  // for taking hooks out of a file, which a gateway that stops waits for
)

// dialer connects one source, in the way of its protocol. It belongs to the goroutine of its [Link].
type dialer struct {
	sources *Sources
	child   *child
	feed    Feed   // the one that was dialled last
	place   string // of an event stream: its last id
}

func (d *dialer) dial(ctx context.Context) (Conn, error) {
	var s Source
	var key string
	err := d.sources.do(ctx, func(k *keeper) (err error) {
		s, err = k.get(d.child.id)
		key = k.Key(d.child.id)
		return err
	})
	if err != nil {
		return nil, err
	}
	if d.feed, err = d.open(ctx, s, key); err != nil {
		return nil, err
	}
	return limited{d.feed, d.child.gate}, nil
}

// open connects to a source. What somebody added is looked at anew each time, since another program may be there now.
func (d *dialer) open(ctx context.Context, s Source, key string) (Feed, error) {
	protocol := s.Protocol
	if !s.Local {
		protocol = Detect(s.URL)
	}
	switch {
	case s.ID == ClaudeCodeID:
		return d.hooks(ctx)
	case protocol == MIDI:
		return d.midi(ctx, s)
	case protocol == Gateway:
		return d.openClaw(ctx, s, key)
	case protocol == WebSocket:
		return d.socket(ctx, s.URL, key, d.plain(s))
	case protocol == Anthropic, protocol == OpenAI:
		return d.models(ctx, s, protocol, key)
	}
	feed, err := d.models(ctx, s, OpenAI, key) // what an HTTP address is does not stand in it
	if err == nil || ctx.Err() != nil {
		return feed, err
	}
	d.upgrade(SSE, nil)
	return d.stream(ctx, s.URL, key, d.plain(s))
}

func (d *dialer) plain(s Source) Plain { return Plain{Stamp: d.sources.stamp, Source: s.ID} }

// upgrade says what was found out about the source.
func (d *dialer) upgrade(p Protocol, models []string) {
	d.sources.tell(func(k *keeper) { _ = k.Upgrade(d.child.id, p, models) }) // it is there as long as its child is
}

func (d *dialer) midi(ctx context.Context, s Source) (Feed, error) {
	if d.sources.cfg.MIDI == nil {
		return nil, fault{"This gateway opens no MIDI devices.", true}
	}
	return d.sources.cfg.MIDI(ctx, s.URL)
}

// claw is a connection to OpenClaw.
type claw struct {
	*openclaw.Listener
	OpenClaw
}

func (d *dialer) openClaw(ctx context.Context, s Source, key string) (Feed, error) {
	address := s.URL
	if rest, ok := strings.CutPrefix(address, "http"); ok { // an address of the same port, as its page has it
		address = "ws" + rest
	}
	listener, err := openclaw.Listen(ctx, openclaw.ListenConfig{URL: address, Token: key, Dial: d.sources.cfg.dial})
	if err != nil {
		return nil, allowed(err)
	}
	return &claw{listener, OpenClaw{Stamp: d.sources.stamp}}, nil
}

// hooked is a source that speaks up itself, for as long as its hooks are there.
type hooked struct{ hooks Hooks }

func (d *dialer) hooks(ctx context.Context) (Feed, error) {
	hooks := d.sources.cfg.Hooks
	if hooks == nil {
		return nil, fault{"This gateway cannot put hooks into Claude Code's settings.", true}
	}
	if err := hooks.Install(ctx); err != nil {
		_ = within(hooksTime, hooks.Remove) // it may have come half the way
		var said Refusal
		if errors.As(err, &said) {
			return nil, fault{said.Error(), true}
		}
		return nil, fault{"The hooks could not be put into Claude Code's settings. May this gateway write them?", true}
	}
	return hooked{hooks}, nil
}

func (hooked) Next(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (hooked) Parse([]byte) []signal.Raw { return nil }

// Close takes the hooks out again, also when everything ends.
func (h hooked) Close() error {
	if within(hooksTime, h.hooks.Remove) != nil {
		return fault{words: "The hooks could not be taken out of Claude Code's settings. Take them out yourself."}
	}
	return nil
}

// allowed is an error of a connection in its own words, or those of [ErrForbidden] if that is why.
func allowed(err error) error {
	if errors.Is(err, ErrForbidden) {
		return fault{string(ErrForbidden), true}
	}
	return err
}

// client makes requests to addresses that people gave. It goes through no proxy, behind which nobody could see where a
// name leads, and keeps no connection.
func (s *Sources) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            s.cfg.dial,
			TLSHandshakeTimeout:    dialTime,
			ResponseHeaderTimeout:  answerTime,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
			DisableCompression:     true, // it would hold messages back
		},
		CheckRedirect: follow,
	}
}

// follow goes along with a few redirects to addresses that a source may have. A key is for the first host alone, and what
// began encrypted stays so.
func follow(next *http.Request, before []*http.Request) error {
	first := before[0]
	elsewhere := next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme && next.URL.Scheme != "https"
	switch {
	case len(before) > 3:
		return fault{"The source redirects again and again.", true}
	case CheckURL(next.URL.String()) != nil:
		return fault{string(ErrForbidden), true}
	case elsewhere && (first.Header.Get("Authorization") != "" || first.URL.Scheme == "https" && next.URL.Scheme != "https"):
		return fault{"The source redirects to another host, which does not get its key. Give the address of that one.", true}
	}
	return nil
}

// authorize shows the key, if there is one.
func authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// refusedBy says what an answer means that is not the wanted one.
func refusedBy(status int) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault{"The source does not accept the key, or wants one. Set the right key.", true}
	case status == http.StatusNotFound, status == http.StatusGone:
		return fault{"There is nothing at this address (404). Is its path right?", true}
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return fault{words: "The source answers with an error for now (" + http.StatusText(status) + ")."}
	}
	return fault{"The source answers with something else than signals (" + cmp.Or(http.StatusText(status), "an unknown status") + ").", true}
}

// onThisMachine says whether an address is of this machine.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
