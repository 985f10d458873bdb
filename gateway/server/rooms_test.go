package server_test

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"vela/gateway/auth"
	"vela/gateway/server"
)

// lobby is LiveKit as the server sees it: it lets everybody in, and remembers who asked for what.
type lobby struct {
	asked []string
	full  bool
	err   error
	pass  *auth.Pass
	at    string // LiveKit's address where it is another one
}

func (l *lobby) Token(room, identity, name, metadata string, attributes map[string]string, pass *auth.Pass) (url, token string, err error) {
	l.asked = append(l.asked, strings.Join([]string{room, identity, name, metadata, attributes["colour"]}, "/"))
	l.pass = pass
	return strings.TrimSpace(cmp.Or(l.at, "ws://livekit.example")), "TOKEN", l.err
}

func (l *lobby) Join(room string) error {
	l.asked = append(l.asked, "join "+room)
	if l.full {
		return errors.New("full")
	}
	return nil
}

func (l *lobby) Webhook(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if l.asked = append(l.asked, r.Header.Get("Authorization")+" "+string(body)); err == nil && string(body) == "forged" {
		err = errors.New("forged")
	}
	return err
}

func (*lobby) Address() string { return "ws://livekit.example" }

// Who may enter rooms, and what they get: one room each, for callers who may have agent-backed turns.
func TestRooms(t *testing.T) {
	hall := &lobby{}
	g := guard(t, func(c *server.Config) { c.Rooms = hall })
	token := func(turns ...string) string { return token(t, g.authority, auth.Rights{Turns: turns}) }
	const json = "application/json"
	for _, c := range []struct {
		name, path, bearer, kind, body string
		status                         int
		answer, asked                  string
	}{
		{"nobody", "/api/livekit/token", "", json, `{}`, 401, "", ""},
		{"a token", "/api/livekit/token", token(), json, `{"room_name":"r","participant_identity":"i","participant_name":"n","participant_metadata":"m","participant_attributes":{"colour":"blue"}}`,
			201, `{"server_url":"ws://livekit.example","participant_token":"TOKEN"}`, "r/i/n/m/blue"},
		{"an empty body", "/api/livekit/token", token("agent"), "", ``, 201, "", "////"},
		{"a token for the fixed turns", "/api/livekit/token", token("deterministic"), json, `{}`, 403, "", ""},
		{"another type", "/api/livekit/token", token(), "text/plain", `{}`, 415, "", ""},
		{"no object", "/api/livekit/token", token(), json, `null`, 400, "", ""},
		{"a room_config", "/api/livekit/token", token(), json, `{"room_config":{"name":"x"}}`, 400, "", ""},
		{"no room_config", "/api/livekit/token", token(), json, `{"room_config":null}`, 201, "", "////"},
		{"our own identity", "/api/livekit/token", token(), json, `{"participant_identity":"agent-x"}`, 400, "", ""},
		{"control characters", "/api/livekit/token", token(), json, `{"room_name":"a\u0007"}`, 400, "", ""},
		{"too much", "/api/livekit/token", token(), json, `{"participant_metadata":"` + strings.Repeat("x", 20000) + `"}`, 413, "", ""},
		{"join", "/api/livekit/rooms/my%20room/join", token(), "", ``, 202, "", "join my room"},
		{"join without a token", "/api/livekit/rooms/r/join", "", "", ``, 401, "", ""},
		{"a webhook shows no token of ours", "/api/livekit/webhook", "signed by LiveKit", "", `told`, 200, "", "Bearer signed by LiveKit told"},
		{"a forged one", "/api/livekit/webhook", "", "", `forged`, 401, "", " forged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hall.asked = nil
			req, err := http.NewRequest(http.MethodPost, "http://"+g.addr+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.bearer != "" {
				req.Header.Set("Authorization", "Bearer "+c.bearer)
			}
			if c.kind != "" {
				req.Header.Set("Content-Type", c.kind)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || c.answer != "" && strings.TrimSpace(string(body)) != c.answer {
				t.Errorf("%d %s, %v", resp.StatusCode, body, err)
			}
			if got := strings.Join(hall.asked, "; "); got != c.asked {
				t.Errorf("LiveKit was asked %q, want %q", got, c.asked)
			}
		})
	}
	for err, status := range map[error]int{auth.ErrSessions: 429, auth.ErrExpired: 401, nil: 201} {
		hall.err, hall.pass = err, nil
		req, _ := http.NewRequest(http.MethodPost, "http://"+g.addr+"/api/livekit/token", nil)
		req.Header.Set("Authorization", "Bearer "+token())
		resp, failed := http.DefaultClient.Do(req)
		if failed != nil || resp.StatusCode != status || hall.pass == nil {
			t.Errorf("%v: %v, %v, with the caller's own: %v", err, resp, failed, hall.pass != nil)
		}
	}
	hall.full = true
	open := serve(t, func(c *server.Config) { c.Rooms = hall })
	resp, err := http.Post("http://"+open.addr+"/api/livekit/rooms/r/join", "", nil)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("with no place: %v, %v", resp, err)
	}
	none := serve(t, nil)
	if resp, err := http.Post("http://"+none.addr+"/api/livekit/token", "", nil); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("without LiveKit: %v, %v", resp, err)
	}
}
