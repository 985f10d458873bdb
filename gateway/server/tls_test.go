package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"vela/gateway/cert"
	"vela/gateway/server"
)

// secured is a gateway with a certificate for localhost and vela.test, and a client that takes it without looking.
func secured(t *testing.T, change func(*server.Config)) (*gateway, *http.Client) {
	t.Helper()
	c, err := cert.Self(t.TempDir(), []string{"localhost", "127.0.0.1", "vela.test"})
	if err != nil {
		t.Fatal(err)
	}
	g := serve(t, func(cfg *server.Config) {
		cfg.TLS, cfg.OwnName = c.Config(), c.Names
		if change != nil {
			change(cfg)
		}
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return g, &http.Client{Transport: transport}
}

func TestASocketOverTLS(t *testing.T) {
	g, client := secured(t, nil)
	_, port, _ := net.SplitHostPort(g.addr)
	for _, c := range []struct {
		name, origin, host string
		status             int
	}{
		{"a program", "", "", 101},
		{"our own page", "https://" + g.addr, "", 101},
		{"our own page as it came without TLS", "http://" + g.addr, "", 403},
		{"our own page under a name of the certificate", "https://vela.test:" + port, "vela.test:" + port, 101},
		{"the same in capitals", "https://VELA.test:" + port, "Vela.Test:" + port, 101},
		{"a name that points here (DNS rebinding)", "https://evil.example:" + port, "evil.example:" + port, 403},
		{"an address that is not ours", "https://192.0.2.1:" + port, "192.0.2.1:" + port, 403},
		{"another page", "https://evil.example", "", 403},
	} {
		header := http.Header{}
		if c.origin != "" {
			header.Set("Origin", c.origin)
		}
		ws, resp, err := websocket.Dial(g.ctx, "wss://"+g.addr+"/ws", &websocket.DialOptions{HTTPHeader: header, Host: c.host, HTTPClient: client})
		if resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v, %v; want %d", c.name, resp, err, c.status)
		}
		if err == nil {
			s := socket{t, ws, g.ctx}
			s.greeted()
			if n := s.mockedTurn(); n != 8 {
				t.Errorf("%s: a turn of %d events", c.name, n)
			}
			_ = ws.CloseNow()
		}
	}
}

func TestTheAddressThatARequestCameToIsOurs(t *testing.T) {
	outside := ""
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() && !n.IP.IsLoopback() {
			outside = n.IP.String()
		}
	}
	if outside == "" {
		t.Skip("this machine has no address but loopback's")
	}
	c, err := cert.Self(t.TempDir(), []string{"localhost"}) // without the address: it is new here
	if err != nil {
		t.Fatal(err)
	}
	for _, withTLS := range []bool{true, false} {
		cfg := server.Config{NewSession: newSession}
		if withTLS {
			cfg.TLS, cfg.OwnName = c.Config(), c.Names
		}
		s, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, l) }()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		scheme, want := "http", http.StatusForbidden
		if withTLS {
			scheme, want = "https", http.StatusOK
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
		resp, err := client.Get(scheme + "://" + net.JoinHostPort(outside, port) + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with TLS %v: %d, want %d", withTLS, resp.StatusCode, want)
		}
		stop()
		<-served
	}
}

func TestPlainHTTPWhereTLSIsSpoken(t *testing.T) {
	g, client := secured(t, nil)
	for _, c := range []struct{ name, request string }{
		{"GET", "GET / HTTP/1.1\r\nHost: " + g.addr + "\r\n\r\n"},
		{"POST", "POST /api/tokens HTTP/1.1\r\nHost: " + g.addr + "\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 10000)},
		{"a socket", "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"},
	} {
		conn, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, c.request)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "https://") {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, body)
		}
		_ = conn.Close()
	}
	resp, err := client.Get("https://" + g.addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Proto != "HTTP/1.1" || resp.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("%s %v", resp.Proto, resp.Status)
	}
}

func TestRubbishWhereTLSIsSpoken(t *testing.T) {
	g, client := secured(t, nil)
	for _, bytes := range []string{"\x00\x01\x02\x03\x04\x05", "\x16\x03\x01\xff\xff", "\x16", ""} {
		conn, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // one that says nothing hangs until the test ends, and harms nobody
		_, _ = io.WriteString(conn, bytes)
	}
	resp, err := client.Get("https://" + g.addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
