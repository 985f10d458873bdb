package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"vela/turn/upstream"
)

// Config says how to reach a server. BaseURL is required.
type Config struct {
	BaseURL string      // http or https; a path of it stands before those of requests. Without query and user.
	Header  http.Header // goes with every request
	Secrets []string    // are written into no error, whatever the server says

	Timeouts

	// Dial connects; nil is any connection, through the proxy of the environment where there is one.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Retries is how often a request is made again that could not connect, or that the server refused for now (408, 409,
	// 429, 500, 502, 503, 504, 529): 2 by default, none if negative. Nothing is repeated once an event has come.
	Retries int
}

// Timeouts bound what a server may keep us waiting. The zero value of each stands for its default.
type Timeouts struct {
	Connect time.Duration // for the connection, and once more for TLS; 5 s
	First   time.Duration // from the request to the first event; 60 s
	Between time.Duration // from one event to the next; 30 s
}

// Client makes requests to one server. Its methods may be called from several goroutines.
type Client struct {
	cfg     Config
	base    string
	secrets upstream.Secrets
	own     *http.Transport
	http    http.Client
	endWait time.Duration // how long the end of an answer is waited for, once its last event has come
}

// New returns a client, or says what is wrong with the configuration. Close it when it is not needed any more.
func New(cfg Config) (*Client, error) {
	base, err := upstream.BaseURL(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	for name, values := range cfg.Header {
		if strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
			return nil, fmt.Errorf("stream: the key or a header has a line end in it: %q", name)
		}
	}
	cfg.Timeouts = cfg.withDefaults()
	if cfg.Retries == 0 {
		cfg.Retries = 2
	}
	own := upstream.Transport(cfg.Connect, 32)
	if cfg.Dial != nil {
		own.DialContext, own.Proxy = cfg.Dial, nil
	}
	c := &Client{cfg: cfg, base: base, secrets: secrets(cfg), own: own, endWait: 20 * time.Millisecond}
	c.http = http.Client{Transport: c.own, CheckRedirect: stay}
	return c, nil
}

// Close lets go of the connections that no request is using.
func (c *Client) Close() { c.own.CloseIdleConnections() }

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Connect: cmp.Or(max(0, t.Connect), 5*time.Second),
		First:   cmp.Or(max(0, t.First), 60*time.Second),
		Between: cmp.Or(max(0, t.Between), 30*time.Second),
	}
}

// secrets are the given ones, and the longer values of headers, which may be keys too.
func secrets(cfg Config) upstream.Secrets {
	all := slices.Clone(cfg.Secrets)
	for _, values := range cfg.Header {
		for _, v := range values {
			if len(v) >= 8 {
				all = append(all, v)
			}
		}
	}
	return upstream.NewSecrets(all...)
}

var errMoved = errors.New("stream: the server redirects to another host, which does not get the key")

// stay follows redirects within one host: what goes with a request is not for anybody else.
func stay(next *http.Request, before []*http.Request) error {
	first := before[0]
	if next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host || next.Method != first.Method || len(before) > 3 {
		return errMoved
	}
	return nil
}

// request has the headers of the configuration.
func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "vela")
	for name, values := range c.cfg.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	return req, nil
}

// maxDocument bounds the answer to Get.
const maxDocument = 4 << 20

// Get fetches a document, such as the list of a server's models, once. It waits as long as ctx does. A refusal is an
// [*Error] with the server's status.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, c.refused(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, Failed("The model's answer broke off.", c.hidden(err))
	case len(body) > maxDocument:
		return nil, Failed("The model's answer is too long.", fmt.Errorf("stream: a document of more than %d bytes", maxDocument))
	}
	return body, nil
}

// hidden is an error of the network, without secrets.
func (c *Client) hidden(err error) error { return errors.New("stream: " + c.Hide(err.Error())) }
