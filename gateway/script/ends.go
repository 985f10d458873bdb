package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"vela/gateway/client"
)

// closed expects the end of a connection; code 0 is any.
func closed(name string, code int) action {
	return func(ctx context.Context, p *player) error {
		want := "the connection's end"
		if code != 0 {
			want = fmt.Sprintf("the connection's end with %d", code)
		}
		a, ok := p.await(ctx, name, p.limit, nil)
		if !ok {
			return p.nothing(want)
		}
		var end *client.CloseError
		if errors.As(a.err, &end) && (code == 0 || int(end.Code) == code) {
			return nil
		}
		return fmt.Errorf("expected  %s\ngot       %s", want, a)
	}
}

// closeOurs closes from this side, and waits for the gateway's half of the handshake.
func closeOurs(name string) action {
	return func(_ context.Context, p *player) error {
		k, err := p.conn(name)
		if err != nil {
			return err
		}
		p.note(name, "closed by us")
		return k.client.Close()
	}
}

func drop(name string) action {
	return func(_ context.Context, p *player) error {
		k, err := p.conn(name)
		if err != nil {
			return err
		}
		p.note(name, "cut by us")
		k.client.Drop()
		return nil
	}
}

// maxBody bounds what is read of an answer, in bytes.
const maxBody = 1 << 20

// httpRequest makes a plain request and looks at the answer.
func httpRequest(method, path string, status int, contains string) action {
	return func(ctx context.Context, p *player) error {
		got, body, err := p.fetch(ctx, method, path)
		if err != nil {
			return err
		}
		if got != status || !strings.Contains(body, contains) {
			want := fmt.Sprintf("status %d", status)
			if contains != "" {
				want += " and " + contains
			}
			return fmt.Errorf("expected  %s\ngot       status %d and %s", want, got, short(body))
		}
		return nil
	}
}

func (p *player) fetch(ctx context.Context, method, path string) (status int, body string, err error) {
	a, err := client.ParseAddress(p.gateway.Address)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.HTTP(path), nil)
	if err != nil {
		return 0, "", err
	}
	transport := &http.Transport{DisableKeepAlives: true} // nothing stays behind
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, string(b), err
}
