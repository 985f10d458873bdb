package script_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"vela/gateway/script"
)

// puppet is a gateway that does what it is told: "send x", "binary", "close 1009 why", "cut"; anything else comes back.
func puppet(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("all is well\n")) })
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") == "http://elsewhere" || r.URL.Query().Get("turns") == "none" {
			http.Error(w, "Not you.", http.StatusForbidden)
			return
		}
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"vela.v2", "vela.v1"}, InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(-1)
		for dance(r.Context(), ws) {
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// dance follows one command.
func dance(ctx context.Context, ws *websocket.Conn) bool {
	kind, b, err := ws.Read(ctx)
	if err != nil {
		return false
	}
	word, rest, _ := strings.Cut(string(b), " ")
	switch word {
	case "send":
		err = ws.Write(ctx, websocket.MessageText, []byte(rest))
	case "binary":
		err = ws.Write(ctx, websocket.MessageBinary, []byte{1, 0xfe})
	case "close":
		code, why, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(code)
		_ = ws.Close(websocket.StatusCode(n), why)
		return false
	case "cut":
		return false
	default:
		err = ws.Write(ctx, kind, b)
	}
	return err == nil
}

// play runs a script against the puppet.
func play(t *testing.T, text string) script.Result {
	t.Helper()
	s, err := script.Parse("s", text)
	if err != nil {
		t.Fatal(err)
	}
	return script.Run(t.Context(), s, script.Gateway{Address: puppet(t)})
}

func TestRunPasses(t *testing.T) {
	for name, text := range map[string]string{
		"a message":            "> {\"a\":1}\n< { \"a\" : 1 }",
		"a text":               "> not json\n<< not json",
		"an empty message":     ">empty\n> \"x\"\n< ... until \"x\"",
		"binary":               ">binary 73656e64 2031\n< 1",
		"named values":         "> \"x\"\n< \"<v:text>\"\n> \"x\"\n< \"<v:text>\"\n> \"y\"\n< \"<!v>\"",
		"repeat":               ">repeat 3 1\n< 1\n< 1\n< 1\nsilent 20ms",
		"size":                 ">size 70000\n< {\"type\":\"session.start\",\"payload\":{},\"padding\":\"<text>\"}",
		"sizes":                ">size 125\n>size 126\n>size 65535\n>size 65536\n< \"<any>\"\n< \"<any>\"\n< \"<any>\"\n< \"<any>\"",
		"names of what agrees": "> [1,0]\n> [2,1]\n< ... until [\"<v:any>\",1]\n> 1\n< \"<!v>\"\n> 2\n< \"<v:any>\"",
		"lines that end in CR": "> 1\r\n<< 1",
		"more than is read":    ">repeat 6000 1\n< 1\nwait 50ms",
		"a frame by hand":      ">frame 81 81 00000000 '7'\n< 7",
		"a masked frame":       ">frame 8181 01010101 36\n< 7",
		"skipping":             "> 1\n> 2\n> not json\n> 3\n< ... until 3\nsilent 20ms",
		"silence and time":     "silent 20ms\nwait 1ms\n> 1\n< 1",
		"their close":          "> close 1009 too big\nclosed 1009",
		"any close":            "> close 4000\nclosed",
		"a close once seen":    "> close 4000\nclosed 4000\nclosed 4000",
		"a cut":                "> cut\nclosed 1006",
		"a malformed frame":    ">frame c1 80 00000000\nclosed 1002",
		"our close":            "close\nclosed 1000",
		"our cut":              "drop\nclosed 1006",
		"two connections":      "connect as a\nconnect as b\na> 1\nb> 2\nb< 2\na< 1\na: close\nb> 3\nb< 3",
		"connecting again":     "connect as a\na: drop\nconnect as a\na> 1\na< 1",
		"over an open one":     "connect as a\nconnect as a\na> 1\na< 1",
		"a subprotocol":        "connect protocol=vela.v7,vela.v1\n> 1\n< 1",
		"refusals":             "connect origin=http://elsewhere refused=403\nconnect as b turns=none refused=403",
		"requests":             "http GET /healthz 200 is well\nhttp GET /nothing 404",
		"a close half read":    "> send 1\n> close 1001\n< 1\nclosed 1001",
		"nothing of a limit":   "within 10s\n> 1\n< 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, text)
			if !r.Passed() || r.Line != 0 || r.Name != "s" {
				t.Errorf("line %d: %v", r.Line, r)
			}
			if want := regexp.MustCompile(`^PASS s \(\d+ ms\)$`); !want.MatchString(r.String()) {
				t.Errorf("%q", r)
			}
		})
	}
}

// What a person reads when a script fails, whole.
func TestRunExplains(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another message": {"# c\n> {\"type\":\"b\",\"n\":1}\n< {\"type\":\"a\"}", `FAIL s: line 3
  < {"type":"a"}
  expected  {"type":"a"}
  got       {"type":"b","n":1}
  at type: expected "a", got "b"
  at n: unexpected field, 1
  before it
    connected
    > {"type":"b","n":1}`},
		"nothing": {"within 20ms\n< 1", `FAIL s: line 2
  < 1
  expected  1
  got       nothing within 20ms
  before it
    connected`},
		"binary": {"> binary\n< 1", `FAIL s: line 2
  < 1
  expected  1
  got       a binary message of 2 bytes: 01 fe
  before it
    connected
    > binary`},
		"other bytes": {"> {}\n<< { }", `FAIL s: line 2
  << { }
  expected  { }
  got       {}
  at byte 2 they part
  before it
    connected
    > {}`},
		"no bytes": {"> close 1008\n<< x", `FAIL s: line 2
  << x
  expected  x
  got       the gateway closed the connection with 1008
  before it
    connected
    > close 1008`},
		"no bytes in time": {"within 20ms\n<< x", `FAIL s: line 2
  << x
  expected  x
  got       nothing within 20ms
  before it
    connected`},
		"an end instead": {"> close 1009 too big\n< 1", `FAIL s: line 2
  < 1
  expected  1
  got       the gateway closed the connection with 1009: too big
  before it
    connected
    > close 1009 too big`},
		"a message instead of an end": {"> 1\nclosed 1002", `FAIL s: line 2
  closed 1002
  expected  the connection's end with 1002
  got       1
  before it
    connected
    > 1`},
		"another code": {"> close 1001\nclosed 1002", `FAIL s: line 2
  closed 1002
  expected  the connection's end with 1002
  got       the gateway closed the connection with 1001
  before it
    connected
    > close 1001`},
		"no end": {"within 20ms\nclosed", `FAIL s: line 2
  closed
  expected  the connection's end
  got       nothing within 20ms
  before it
    connected`},
		"no silence": {"> 1\nsilent 10s", `FAIL s: line 2
  silent 10s
  expected  nothing for 10s
  got       1
  before it
    connected
    > 1`},
		"never": {"within 20ms\n< ... until 3", `FAIL s: line 2
  < ... until 3
  expected  … 3
  got       0 other messages, and not this one within 20ms
  before it
    connected`},
		"an end before it": {"> 1\n> close 1001\n< ... until 3", `FAIL s: line 3
  < ... until 3
  expected  … 3
  got       1 other messages, then: the gateway closed the connection with 1001
  before it
    connected
    > 1
    > close 1001
    < 1
    < the gateway closed the connection with 1001`},
		"only the last few": {"connect as b\nb>repeat 8 {}\n" + strings.Repeat("b< {}\n", 7) + "b< 1", `FAIL s: line 10
  b< 1
  expected  1
  got       {}
  at the top: expected 1, got {}
  before it
    b< {}
    b< {}
    b< {}
    b< {}
    b< {}
    b< {}`},
		"an empty message": {"> send \n< 1", `FAIL s: line 2
  < 1
  expected  1
  got       an empty message
  it is not JSON: it ends too early
  before it
    connected
    > send `},
		"a status": {"http GET /healthz 404 oh", `FAIL s: line 1
  http GET /healthz 404 oh
  expected  status 404 and oh
  got       status 200 and all is well\n`},
		"no words": {"http GET /healthz 200 oh", `FAIL s: line 1
  http GET /healthz 200 oh
  expected  status 200 and oh
  got       status 200 and all is well\n`},
		"no refusal": {"connect refused=403", `FAIL s: line 1
  connect refused=403
  expected  a refusal with status 403
  got       a connection`},
		"another refusal": {"connect turns=none refused=400", `FAIL s: line 1
  connect turns=none refused=400
  expected  a refusal with status 400
  got       the gateway at HOST does not admit this client or its origin (403 Forbidden): Not you.`},
		"a refusal": {"connect turns=none", `FAIL s: line 1
  connect turns=none
  the gateway at HOST does not admit this client or its origin (403 Forbidden): Not you.`},
		"no subprotocol": {"connect protocol=vela.v7", `FAIL s: line 1
  connect protocol=vela.v7
  offered   vela.v7
  got       no subprotocol
  before it
    connected`},
		"a message after the end": {"drop\n> 1", `FAIL s: line 2
  > 1
  cannot send: the connection was lost: use of closed network connection
  before it
    connected
    cut by us`},
		"no file": {">wav nothing.wav", `FAIL s: line 1
  >wav nothing.wav
  the WAV file cannot be opened: open nothing.wav: no such file or directory
  before it
    connected`},
		"no sound": {">wav run_test.go", `FAIL s: line 1
  >wav run_test.go
  run_test.go: speech: read WAV: not a WAV file: it begins with "package scri"
  before it
    connected`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, c.text)
			got := regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(r.String(), "HOST")
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// A message of a megabyte does not fill the screen.
func TestRunCutsWhatIsLong(t *testing.T) {
	long := strings.Repeat("é", 1000)
	r := play(t, "> \""+long+"\"\n< \"x"+long+"\"")
	if text := r.String(); len(text) > 3000 || strings.Count(text, "… (200") < 5 || strings.Contains(text, "\ufffd") {
		t.Errorf("%d bytes:\n%s", len(text), text)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	for name, text := range map[string]string{
		"waiting":   "wait 10m",
		"expecting": "within 10m\n< 1",
		"silent":    "silent 10m",
		"skipping":  "within 10m\n< ... until 1",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := script.Parse("s", text)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
			r := script.Run(ctx, s, script.Gateway{Address: puppet(t)})
			if !errors.Is(r.Err, why) || r.Took > 5*time.Second {
				t.Errorf("%v", r)
			}
		})
	}
}

func TestRunAgainstNobody(t *testing.T) {
	s, err := script.Parse("s", "< 1")
	if err != nil {
		t.Fatal(err)
	}
	for address, says := range map[string]string{
		"ftp://x":     "a gateway is not reached by ftp://",
		"127.0.0.1:1": "no gateway listens at 127.0.0.1:1",
	} {
		if r := script.Run(t.Context(), s, script.Gateway{Address: address}); r.Passed() || !strings.Contains(r.String(), says) {
			t.Errorf("%s: %v", address, r)
		}
	}
}
