package gateway

import (
	"strings"
	"testing"
	"time"
)

func TestWhereLiveKitIs(t *testing.T) {
	clear := func(t *testing.T) {
		for _, v := range []string{"LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET", "OTHER_KEY", "OTHER_SECRET"} {
			t.Setenv(v, "")
		}
	}
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		want LiveKit
		err  string
	}{
		"nowhere":         {"", nil, LiveKit{}, ""},
		"the environment": {"", map[string]string{"LIVEKIT_URL": "ws://a:7880", "LIVEKIT_API_KEY": "k", "LIVEKIT_API_SECRET": "s"}, LiveKit{URL: "ws://a:7880", Key: "k", Secret: "s"}, ""},
		"the file comes first": {"livekit: {url: 'wss://b', public: 'wss://c', key_env: OTHER_KEY, secret_env: OTHER_SECRET, agent: vela}",
			map[string]string{"LIVEKIT_URL": "ws://a", "OTHER_KEY": "k", "OTHER_SECRET": "s"}, LiveKit{URL: "wss://b", Public: "wss://c", Key: "k", Secret: "s", Agent: "vela"}, ""},
		"no key":                 {"livekit: {url: 'ws://a'}", map[string]string{"LIVEKIT_API_KEY": "k"}, LiveKit{}, "LIVEKIT_API_SECRET"},
		"no address":             {"", map[string]string{"LIVEKIT_URL": "http://a", "LIVEKIT_API_KEY": "k", "LIVEKIT_API_SECRET": "s"}, LiveKit{}, "LIVEKIT_URL: the address of LiveKit is written like"},
		"no address in the file": {"livekit: {url: 'a:7880'}", nil, LiveKit{}, "line 1: livekit: the address"},
		"a key in the address":   {"livekit: {url: 'ws://user:pass@a'}", nil, LiveKit{}, "line 1: livekit: the address"},
		"a key in the file":      {"livekit: {url: 'ws://a', secret_env: 'dev secret'}", nil, LiveKit{}, "line 1: livekit: key_env, token_env and env take names"},
		"an unknown key":         {"livekit: {adress: x}", nil, LiveKit{}, "line 1"},
		"any source":             {"livekit: {follow: ['*']}", nil, LiveKit{}, "line 1: livekit: follow takes up to 16 sources by their names"},
		"no duration":            {"livekit: {hold: soon}", nil, LiveKit{}, "line 1: this must be a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			f, err := parseFile([]byte(c.file))
			var got LiveKit
			if err == nil {
				got, err = f.LiveKit()
			}
			switch {
			case c.err == "" && (err != nil || got != c.want):
				t.Errorf("%+v, %v", got, err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "dev secret")):
				t.Errorf("%v", err)
			}
		})
	}
	f, err := parseFile([]byte("livekit: {hold: 60s, content: false, transcripts: true, hands_free: true, follow: ['local:claude-code']}"))
	if l := f.livekit; err != nil || len(l.Follow) != 1 || l.Follow[0] != "local:claude-code" || time.Duration(l.Hold) != time.Minute || l.Content == nil || *l.Content || !l.Transcripts || !l.HandsFree {
		t.Errorf("%+v, %v", l, err)
	}
}

// Over TLS participants reach a LiveKit without it through the gateway, unless the file says where.
func TestWhoReachesLiveKitThroughUs(t *testing.T) {
	t.Setenv("LIVEKIT_API_KEY", "key")
	t.Setenv("LIVEKIT_API_SECRET", "secret")
	for _, c := range []struct {
		url, public string
		tls         bool
		want        string
	}{
		{"ws://127.0.0.1:7880", "", true, "http://127.0.0.1:7880"},
		{"ws://127.0.0.1:7880", "", false, ""},
		{"ws://127.0.0.1:7880", "wss://livekit.example", true, ""},
		{"wss://livekit.example", "", true, ""},
		{"", "", true, ""},
	} {
		t.Setenv("LIVEKIT_URL", c.url)
		g := &Gateway{cfg: Config{TLS: TLS{Self: c.tls}, Agents: File{livekit: liveKitSpec{Public: c.public}}}}
		if got := g.signalling(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
