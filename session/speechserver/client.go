package speechserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"vela/session/speech"
	"vela/turn/upstream"
)

// Config says where a server is. URL is required.
type Config struct {
	URL string // http or https; for an OpenAI-compatible server with its version, as in http://127.0.0.1:8000/v1
	Key string // is sent as a bearer token; empty: none

	Connect time.Duration // for the connection, and once more for TLS; 0: 5 s
	Answer  time.Duration // from the request to the head of the answer; 0: 60 s
	Between time.Duration // from one piece of the answer to the next; 0: 15 s

	Log *slog.Logger // nil discards
}

func (c Config) withDefaults() Config {
	c.Connect = cmp.Or(max(0, c.Connect), 5*time.Second)
	c.Answer = cmp.Or(max(0, c.Answer), 60*time.Second)
	c.Between = cmp.Or(max(0, c.Between), 15*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Bounds of one request.
const (
	longestText  = 4096 // bytes of text to speak, so at most as many characters, which is what OpenAI takes; what is longer is cut between words
	longestSound = 10 * time.Minute
	mostJSON     = 1 << 20 // bytes of an answer that is a document
	mostRefusal  = 4 << 10 // bytes that are kept of an answer without success
)

// client makes requests to one server. Its methods may be called from several goroutines.
type client struct {
	cfg     Config
	base    string
	secrets upstream.Secrets
	http    http.Client
}

func newClient(cfg Config) (*client, error) {
	base, err := upstream.BaseURL(cfg.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("speechserver: %w", err)
	case strings.ContainsAny(cfg.Key, "\r\n\x00"):
		return nil, errors.New("speechserver: the key has a line end in it")
	}
	cfg = cfg.withDefaults()
	transport := upstream.Transport(cfg.Connect, 8)
	transport.ResponseHeaderTimeout = cfg.Answer
	return &client{cfg: cfg, base: base, secrets: upstream.NewSecrets(cfg.Key), http: http.Client{
		Transport: transport,
		// The key and what was said are for nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// close lets go of the connections that no request is using.
func (c *client) close() { c.http.CloseIdleConnections() }

var errSilent = errors.New("speechserver: the answer stopped coming")

// post sends body and hands a successful answer to read, which need not take all of it. The request ends with post. An error is the cause of ctx, or an
// [*Error].
func (c *client) post(ctx context.Context, path, contentType string, body []byte, read func(kind string, answer io.Reader) error) error {
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	response, err := c.connect(within, path, contentType, body)
	if err != nil {
		return ended(ctx, unavailable("The speech server cannot be reached.", err))
	}
	defer response.Body.Close()
	answer := &patient{r: response.Body, limit: c.cfg.Between, stop: stop, ctx: within}
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer, mostRefusal)) // as much as there is
		return ended(ctx, c.refusal(response.StatusCode, said))
	}
	return ended(ctx, read(response.Header.Get("Content-Type"), answer))
}

// connect makes the request, once more where no connection came about: the server has not seen anything of it then.
func (c *client) connect(ctx context.Context, path, contentType string, body []byte) (*http.Response, error) {
	for again := true; ; again = false {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, strings.NewReader(string(body)))
		if err != nil {
			return nil, err
		}
		req.Header.Set("User-Agent", "vela")
		req.Header.Set("Content-Type", contentType)
		if c.cfg.Key != "" {
			req.Header.Set("Authorization", "Bearer "+c.cfg.Key)
		}
		response, err := c.http.Do(req)
		var dial *net.OpError
		if err == nil || !again || ctx.Err() != nil || !errors.As(err, &dial) || dial.Op != "dial" {
			return response, err
		}
		c.cfg.Log.Info("connect once more", "error", err)
	}
}

// patient is an answer that may not stop coming for longer than limit. The time that its reader takes does not count.
type patient struct {
	r     io.Reader
	limit time.Duration
	ctx   context.Context
	stop  context.CancelCauseFunc
}

func (p *patient) Read(b []byte) (int, error) {
	timer := time.AfterFunc(p.limit, func() { p.stop(errSilent) })
	n, err := p.r.Read(b)
	timer.Stop()
	if err != nil && err != io.EOF && p.ctx.Err() != nil {
		err = context.Cause(p.ctx)
	}
	return n, err
}

// cut holds text to what a server takes.
func (c *client) cut(text string) string {
	if len(text) > longestText {
		whole := len(text)
		text = speech.Cut(text, longestText)
		c.cfg.Log.Warn("text cut off", "bytes", whole, "spoken", len(text))
	}
	return text
}
