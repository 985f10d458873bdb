package room

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/livekit/protocol/livekit"
	"google.golang.org/protobuf/proto"
	"nhooyr.io/websocket"
)

// aLiveKit answers as one of that version does, by a clock that is so far ahead. The empty version is one from before there
// were agents.
func aLiveKit(t *testing.T, version string, ahead time.Duration) Config {
	t.Helper()
	api := livekit.NewRoomServiceServer(&fakeLiveKit{})
	mux := http.NewServeMux()
	mux.Handle(api.PathPrefix(), api)
	mux.HandleFunc("/rtc/validate", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	})
	if version != "" {
		mux.HandleFunc("/agent", func(w http.ResponseWriter, r *http.Request) { register(w, r, version) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return Config{URL: strings.Replace(server.URL, "http", "ws", 1), Key: "key", Secret: "secret-secret-secret-secret-secret"}
}

// register takes a worker, as LiveKit does, behind a message that the worker does not know.
func register(w http.ResponseWriter, r *http.Request, version string) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	var m livekit.WorkerMessage
	if _, b, err := ws.Read(r.Context()); err != nil || proto.Unmarshal(b, &m) != nil || !strings.HasPrefix(m.GetRegister().GetAgentName(), "check-") {
		return
	}
	for _, m := range []*livekit.ServerMessage{{}, {Message: &livekit.ServerMessage_Register{
		Register: &livekit.RegisterWorkerResponse{ServerInfo: &livekit.ServerInfo{Version: version}},
	}}} {
		b, err := proto.Marshal(m)
		if err != nil || ws.Write(r.Context(), websocket.MessageBinary, b) != nil {
			return
		}
	}
	_, _, _ = ws.Read(r.Context())
}

func TestCheck(t *testing.T) {
	const update = "Bring LiveKit up to date"
	for _, c := range []struct {
		version        string
		ahead          time.Duration
		what, says, do string
	}{
		{"1.13.5", 0, "version", "it is 1.13.5", ""},
		{"2.0.0", 0, "version", "it is 2.0.0", ""},
		{"1.9.0", 0, "version", "it is 1.9.0", ""},
		{"1.8.4", 0, "version", "it is 1.8.4", update},
		{"0.15.7", 0, "version", "it is 0.15.7", update},
		{"", 0, "version", "it knows no agents: it is an old one", update},
		{"1.13.5", 10 * time.Second, "clock", "both agree", ""},
		{"1.13.5", 90 * time.Minute, "clock", "LiveKit's is 1h", "Set both clocks by NTP"},
		{"1.13.5", -90 * time.Minute, "clock", "LiveKit's is -1h", "Set both clocks by NTP"},
	} {
		t.Run(c.version+" "+c.what+" "+c.ahead.String(), func(t *testing.T) {
			found := map[string]Finding{}
			for _, f := range Check(t.Context(), aLiveKit(t, c.version, c.ahead), "") {
				found[f.What] = f
			}
			f, ok := found[c.what]
			if !ok || !strings.HasPrefix(f.Says, c.says) || (f.Do == "") != (c.do == "") || !strings.HasPrefix(f.Do, c.do) {
				t.Errorf("it says %+v", f)
			}
			for _, other := range []string{"address", "key", "permissions"} {
				if found[other].Do != "" || found[other].Says == "" {
					t.Errorf("it says %+v", found[other])
				}
			}
		})
	}
}

// Each thing that can be wrong with the way there is called by its name.
func TestCheckSaysWhatIsInTheWay(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(locked.Close)
	own := httptest.NewUnstartedServer(http.NotFoundHandler())
	own.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told of our alert
	own.StartTLS()
	t.Cleanup(own.Close)
	for name, c := range map[string]struct{ url, what, says, do string }{
		"nobody":                   {"ws://127.0.0.1:9", "address", "nobody answers at ws://127.0.0.1:9", "Start LiveKit there"},
		"no such machine":          {"ws://no..where:7880", "address", "no machine has the name in ws://no..where:7880", "Correct LIVEKIT_URL"},
		"no TLS":                   {strings.Replace(plain.URL, "http", "wss", 1), "address", "speaks no TLS", "Write ws://"},
		"a certificate of its own": {strings.Replace(own.URL, "https", "wss", 1), "address", "is not trusted", "Set SSL_CERT_FILE"},
		"another server":           {strings.Replace(plain.URL, "http", "ws", 1), "server", "is not LiveKit", "Correct LIVEKIT_URL"},
		"a wrong key":              {strings.Replace(locked.URL, "http", "ws", 1), "key", "not taken", "Set LIVEKIT_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Check(t.Context(), Config{URL: c.url, Key: "key", Secret: "secret-secret-secret-secret-secret"}, "")
			last := found[len(found)-1]
			if last.What != c.what || !strings.Contains(last.Says, c.says) || !strings.HasPrefix(last.Do, c.do) {
				t.Errorf("%+v", last)
			}
		})
	}
}

// A LiveKit that makes no rooms takes only whoever joins one that is there.
func TestCheckWhereNoRoomIsMade(t *testing.T) {
	cfg := aLiveKit(t, "1.13.5", 0)
	to, err := url.Parse(httpURL(cfg.URL))
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rtc/validate" {
			http.Error(w, "requested room does not exist", http.StatusNotFound)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(strict.Close)
	cfg.URL = strings.Replace(strict.URL, "http", "ws", 1)
	for _, f := range Check(t.Context(), cfg, "") {
		if strange := f.What == "permissions"; strange != strings.Contains(f.Do, "auto_create") {
			t.Errorf("%+v", f)
		}
	}
}

// A gateway says of an old server that it is one, and of others what is the matter.
func TestWhyAWorkerIsNotTaken(t *testing.T) {
	old := aLiveKit(t, "", 0)
	if _, err := dialAgents(context.Background(), &old); err != errOld {
		t.Errorf("an old server: %v", err)
	}
	if _, err := dialAgents(context.Background(), &Config{URL: "ws://127.0.0.1:9", Key: "k", Secret: "s"}); err != errUnreachable {
		t.Errorf("no server: %v", err)
	}
}
