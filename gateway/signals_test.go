package gateway

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// Fifty event streams, of which five are never read: the others get every signal, in order, and who posts is answered.
func TestFiftyEventStreams(t *testing.T) {
	const streams, still, signals = 50, 5, 150
	addr, _ := live(t, Config{})
	base := "http://" + addr
	for range still {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "GET /__signals__/stream HTTP/1.1\r\nHost: %s\r\n\r\n", addr); err != nil {
			t.Fatal(err)
		}
	}
	var next []func() string
	for range streams - still {
		next = append(next, events(t, base+"/__signals__/stream"))
	}
	long := strings.Repeat("x", 20<<10) // together more than sockets hold for who does not read
	for n := range signals {
		body := fmt.Appendf(nil, `{"type":"count","payload":{"n":%d,"text":"%s"}}`, n, long)
		resp, err := http.Post(base+"/api/signal", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		want := fmt.Sprintf(`"payload":{"n":%d,`, n)
		for i, one := range next {
			if got := one(); !strings.Contains(got, want) {
				t.Fatalf("stream %d: %.200s, want %s", i, got, want)
			}
		}
	}
}
