package client_test

import (
	"strings"
	"testing"

	"vela/gateway/client"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct{ in, turns, socket, page string }{
		{"127.0.0.1:8080", "", "ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080/healthz"},
		{"localhost", "agent", "ws://localhost/ws?turns=agent", "http://localhost/healthz"},
		{"http://127.0.0.1:8080", "", "ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080/healthz"},
		{"http://127.0.0.1:8080/", "", "ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080/healthz"},
		{"ws://127.0.0.1:8080/ws", "agent", "ws://127.0.0.1:8080/ws?turns=agent", "http://127.0.0.1:8080/healthz"},
		{"wss://vela.example/ws", "", "wss://vela.example/ws", "https://vela.example/healthz"},
		{"https://vela.example/voice/", "", "wss://vela.example/voice/ws", "https://vela.example/voice/healthz"},
		{"[::1]:8080", "", "ws://[::1]:8080/ws", "http://[::1]:8080/healthz"},
		{"ws://h/ws?turns=deterministic&x=1", "agent", "ws://h/ws?turns=agent&x=1", "http://h/healthz"},
		{"ws://h/ws?turns=agent", "", "ws://h/ws?turns=agent", "http://h/healthz"},
	} {
		a, err := client.ParseAddress(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := a.Socket(c.turns); got != c.socket {
			t.Errorf("%s: socket %s, want %s", c.in, got, c.socket)
		}
		if got := a.HTTP("/healthz"); got != c.page {
			t.Errorf("%s: page %s, want %s", c.in, got, c.page)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for in, says := range map[string]string{
		"":             "write host:port",
		"http://":      "write host:port",
		":8080":        "write host:port",
		"ftp://host":   "not reached by ftp://",
		"host:port:1":  "write host:port",
		"http://a b/c": "write host:port",
	} {
		if _, err := client.ParseAddress(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: the error is %v, want one that says %q", in, err, says)
		}
	}
}
