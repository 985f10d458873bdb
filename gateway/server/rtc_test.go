package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"nhooyr.io/websocket"

	"vela/gateway/auth"
	"vela/gateway/server"
)

// What is LiveKit's is passed on as it came, and nothing else is.
func TestSignallingIsPassedOn(t *testing.T) {
	livekit := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			_, _ = io.WriteString(w, strings.Join([]string{r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("Cookie")}, "|"))
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			kind, said, err := ws.Read(r.Context())
			if err != nil || ws.Write(r.Context(), kind, append([]byte("heard "), said...)) != nil {
				return
			}
		}
	}))
	defer livekit.Close()
	g := guard(t, func(c *server.Config) { c.Signalling = livekit.URL })
	ask := func(path, origin string) (int, string, http.Header) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "http://"+g.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Authorization": {"Bearer LIVEKIT"}, "Cookie": {"a=b"}}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body), resp.Header
	}
	status, body, header := ask("/rtc/validate?access_token=x", "")
	if status != 200 || body != "/rtc/validate?access_token=x|Bearer LIVEKIT|" || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %s %v", status, body, header)
	}
	for path, want := range map[string]int{"/rtc/other": 404, "/twirp/livekit.RoomService/ListRooms": 404, "/agent": 404} {
		if status, body, _ := ask(path, ""); status != want && status != http.StatusUnauthorized || strings.Contains(body, "LIVEKIT") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _, _ := ask("/rtc", "https://evil.example"); status != http.StatusForbidden {
		t.Errorf("a foreign page: %d", status)
	}
	ws, _, err := websocket.Dial(g.ctx, "ws://"+g.addr+"/rtc?access_token=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	if err := ws.Write(g.ctx, websocket.MessageBinary, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, said, err := ws.Read(g.ctx); err != nil || string(said) != "heard hello" {
		t.Errorf("%s, %v", said, err)
	}
	// It ends with the server, which waits for it.
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := ws.Read(g.ctx); err == nil || g.ctx.Err() != nil {
		t.Errorf("the connection outlives the server: %v", err)
	}
}

func TestSignallingWithoutLiveKit(t *testing.T) {
	away := serve(t, func(c *server.Config) { c.Signalling = "http://127.0.0.1:9" })
	resp, err := http.Get("http://" + away.addr + "/rtc/validate?access_token=secret")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusBadGateway || !strings.HasPrefix(string(body), "LiveKit does not answer.") {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
	none := serve(t, nil)
	if resp, err := http.Get("http://" + none.addr + "/rtc/validate"); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("where nothing is passed on: %v %v", resp, err)
	}
}

// Who reaches LiveKit through us is told our own address, as they know it.
func TestOurOwnAddressForLiveKit(t *testing.T) {
	g := guard(t, func(c *server.Config) { c.Rooms = &lobby{at: " "} })
	req, err := http.NewRequest(http.MethodPost, "http://"+g.addr+"/api/livekit/token", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = bearer(token(t, g.authority, auth.Rights{}))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), `"server_url":"ws://`+g.addr+`"`) {
		t.Errorf("%s, %v", body, err)
	}
}
