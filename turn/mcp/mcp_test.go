package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"vela/turn/mcp"
	"vela/turn/tool"
)

// events is a log that a test waits for.
type events chan slog.Record

func (e events) Enabled(context.Context, slog.Level) bool { return true }
func (e events) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e events) WithGroup(string) slog.Handler            { return e }
func (e events) Handle(_ context.Context, r slog.Record) error {
	select {
	case e <- r:
	default: // nobody looks any more
	}
	return nil
}

// next waits for a record with this in it, and returns all of it as text.
func (e events) next(t *testing.T, words string) string {
	t.Helper()
	patience := time.After(30 * time.Second)
	for {
		select {
		case r := <-e:
			line := r.Level.String() + " " + r.Message
			r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
			if strings.Contains(line, words) {
				return line
			}
		case <-patience:
			t.Fatalf("nothing was logged with %q", words)
		}
	}
}

// had says whether a record with this in it has come.
func (e events) had(words string) bool {
	for {
		select {
		case r := <-e:
			if strings.Contains(r.Message, words) {
				return true
			}
		default:
			return false
		}
	}
}

const there = "mcp server is there"

// nobody listens there, as somebody may at a port that another test has let go of.
const nobody = "http://127.0.0.1:1"

// run runs a server until the test ends or stop is called, which waits for its end.
func run(t *testing.T, cfg mcp.Config) (s *mcp.Server, log events, stop func()) {
	t.Helper()
	log = make(events, 10_000)
	cfg.Log = slog.New(log)
	cfg.Name = "test"
	s, err := mcp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			if err := <-done; err != nil {
				t.Errorf("Run returned %v", err)
			}
		}
		stopped = true
	}
	t.Cleanup(stop)
	return s, log, stop
}

// process is a server that is a process of its own.
func process(t *testing.T, kind string) mcp.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Config{Command: self, Env: []string{"TEST_SERVER=" + kind}}
}

// remote is a server that is reached over HTTP.
func remote(t *testing.T, opts *sdk.StreamableHTTPOptions) (mcp.Config, *httptest.Server) {
	t.Helper()
	release := make(chan struct{})
	server := toolServer("http", release)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, opts)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	t.Cleanup(func() { close(release) }) // the SDK's server does not end before its tools do
	return mcp.Config{URL: web.URL, Header: http.Header{"authorization": {"Bearer key"}}}, web
}

func call(t *testing.T, s tool.Caller, name, input string) (string, error) {
	t.Helper()
	r, err := s.Call(t.Context(), tool.Call{Name: name, Input: json.RawMessage(input)})
	return r.Content, err
}

// inTime is call for a server with a short time to answer in: a slow machine may miss it, and then the next call is as good.
func inTime(t *testing.T, s tool.Caller, name, input string) (got string, err error) {
	t.Helper()
	for patience := time.Now().Add(30 * time.Second); time.Now().Before(patience); {
		if got, err = call(t, s, name, input); err == nil || !strings.Contains(err.Error(), "did not answer within") {
			break
		}
	}
	return got, err
}

// Both ways to a server, and for HTTP its four manners, give the same.
func TestCalls(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) mcp.Config{
		"stdio":         func(t *testing.T) mcp.Config { return process(t, "tools") },
		"stdio, chatty": func(t *testing.T) mcp.Config { return process(t, "chatty") },
		"http":          func(t *testing.T) mcp.Config { c, _ := remote(t, nil); return c },
		"http, JSON": func(t *testing.T) mcp.Config {
			c, _ := remote(t, &sdk.StreamableHTTPOptions{JSONResponse: true})
			return c
		},
		"http, no state": func(t *testing.T) mcp.Config {
			c, _ := remote(t, &sdk.StreamableHTTPOptions{Stateless: true})
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, log, stop := run(t, config(t))
			log.next(t, there)
			for _, c := range []struct{ tool, input, want, err string }{
				{"test_echo", `{"a":"x"}`, `{"a":"x"}`, ""},
				{"test_echo", ``, `{}`, ""},
				{"test_echo", `[]`, "", "not a JSON object"},
				{"test_nothing", `{}`, "", "There is no tool"},
				{"test_fails", `{}`, "", "no such thing"},
				{"test_fails_silently", `{}`, "", "The tool failed and does not say why."},
				{"test_mixed", `{}`, "one\n[an image that is not shown: image/png, 4 bytes]\ntwo\n[a link: n file:///x]\ninside\n[a sound that is not played: audio/wav, 2 bytes]", ""},
				{"test_structured", `{}`, `{"n":1}`, ""},
				{"test_large", `{}`, strings.Repeat("€", 64<<10/3) + "\n[cut: 65535 of 300000 bytes]", ""},
			} {
				got, err := call(t, s, c.tool, c.input)
				if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("%s %s: %.100q, %v", c.tool, c.input, got, err)
				}
			}
			stop()
			if _, err := call(t, s, "test_echo", `{}`); err == nil || !strings.Contains(err.Error(), "is not there at the moment") {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func TestDefinitions(t *testing.T) {
	cfg := process(t, "tools")
	cfg.Name = "test"
	never, err := mcp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := never.Definitions(); len(got) != 0 {
		t.Errorf("before it is there, it has %v", got)
	}
	s, log, _ := run(t, cfg)
	log.next(t, there)
	found := map[string]tool.Definition{}
	for _, d := range s.Definitions() {
		found[d.Name] = d
	}
	echo := found["test_echo"]
	if echo.Description != "about echo" || !echo.ReadOnly || found["test_fails"].ReadOnly {
		t.Errorf("echo is %+v", echo)
	}
	if string(echo.Parameters) != `{"properties":{"a":{"type":"string"}},"type":"object"}` {
		t.Errorf("its parameters are %s", echo.Parameters)
	}
	for name := range found {
		if strings.HasPrefix(name, "test_long_name_of_xxx") {
			if got, err := call(t, s, name, `{}`); len(name) != 64 || err != nil || got != "long" {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			return
		}
	}
	t.Errorf("the tool with the long name is not among %v", found)
}

func TestTooManyTools(t *testing.T) {
	s, log, _ := run(t, process(t, "many"))
	log.next(t, "too many tools; the rest is left out kept=128")
	log.next(t, there)
	if got := s.Definitions(); len(got) != 128 || got[127].Name != "test_tool0127" {
		t.Errorf("there are %d tools", len(got))
	}
}

func TestChangedTools(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) mcp.Config{
		"stdio": func(t *testing.T) mcp.Config { return process(t, "tools") },
		"http":  func(t *testing.T) mcp.Config { c, _ := remote(t, nil); return c },
	} {
		t.Run(name, func(t *testing.T) {
			s, log, _ := run(t, config(t))
			log.next(t, there)
			if got, err := call(t, s, "test_grow", `{}`); err != nil || got != "grew" {
				t.Fatal(got, err)
			}
			log.next(t, "mcp tools were listed again")
			if got, err := call(t, s, "test_grown", `{}`); err != nil || got != "new" {
				t.Error(got, err)
			}
		})
	}
}

// A server that dies in the middle of a call fails that call and comes back; its tools stay in between.
func TestDies(t *testing.T) {
	cfg := process(t, "tools")
	for name, cfg := range map[string]mcp.Config{"meanwhile": cfg.Away(), "afterwards": cfg} {
		t.Run(name, func(t *testing.T) {
			s, log, _ := run(t, cfg)
			log.next(t, there)
			if got, err := call(t, s, "test_dies", `{}`); err == nil || !strings.Contains(err.Error(), "The server test was lost during the call") {
				t.Errorf("%q, %v", got, err)
			}
			log.next(t, "mcp server is not there")
			if len(s.Definitions()) == 0 {
				t.Error("its tools are gone")
			}
			if name == "meanwhile" {
				if _, err := call(t, s, "test_echo", `{}`); err == nil || !strings.Contains(err.Error(), "is not there at the moment") {
					t.Error(err)
				}
				return
			}
			log.next(t, there)
			if got, err := call(t, s, "test_echo", `{}`); err != nil || got != "{}" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Whoever runs a server that is not there is told why, and what to do: how it ended, however that was noticed, and what it
// wrote at last.
func TestStatus(t *testing.T) {
	locked, _ := remote(t, nil)
	locked.Header = http.Header{"Authorization": {"Bearer wrong-key"}}
	nowhere := httptest.NewServer(http.NotFoundHandler())
	defer nowhere.Close()
	for name, c := range map[string]struct {
		cfg  mcp.Config
		want []string
	}{
		"dead":        {process(t, "dead"), []string{"exit status 3", `"cannot start …"`, "by hand"}},
		"no program":  {mcp.Config{Command: "no-such-program"}, []string{"no-such-program", "installed"}},
		"no server":   {mcp.Config{URL: nobody}, []string{"refused", "url"}},
		"wrong key":   {locked, []string{"401", "key_env"}},
		"wrong place": {mcp.Config{URL: nowhere.URL}, []string{"404", "url"}},
	} {
		c.cfg.Env = append(c.cfg.Env, "TOKEN=secret")
		s, log, stop := run(t, c.cfg)
		log.next(t, "mcp server is not there")
		got := s.Status()
		stop()
		if got.There || got.Why == nil {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(got.Why.Error(), part) {
				t.Errorf("%s: no %s in %v", name, part, got.Why)
			}
		}
		if strings.Contains(got.Why.Error(), "secret") || strings.Contains(got.Why.Error(), "wrong-key") {
			t.Errorf("%s: a key in %v", name, got.Why)
		}
	}
	s, log, _ := run(t, process(t, "tools"))
	if got := s.Status(); got != (mcp.Status{}) && !got.There {
		t.Errorf("while it is connected to: %+v", got)
	}
	log.next(t, there)
	if got := s.Status(); !got.There || got.Why != nil {
		t.Errorf("once it is there: %+v", got)
	}
}

// A server over HTTP that is not there at first is reached once it is.
func TestComesLater(t *testing.T) {
	cfg, web := remote(t, nil)
	inner := web.Config.Handler
	ready := make(chan struct{})
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ready:
			inner.ServeHTTP(w, r)
		default:
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	s, log, _ := run(t, cfg)
	log.next(t, "mcp server is not there")
	close(ready)
	log.next(t, there)
	if got, err := call(t, s, "test_echo", `{}`); err != nil || got != "{}" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCallsEnd(t *testing.T) {
	cfg := process(t, "tools")
	cfg.Timeout = 300 * time.Millisecond
	s, log, _ := run(t, cfg)
	log.next(t, there)
	if _, err := call(t, s, "test_hangs", `{}`); err == nil || err.Error() != "The server test did not answer within 300ms." {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Call(ctx, tool.Call{Name: "test_hangs"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got, err := inTime(t, s, "test_echo", `{}`); err != nil || got != "{}" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// The end of Run ends a call that is under way.
func TestEndsWithACallUnderWay(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) mcp.Config{
		"stdio": func(t *testing.T) mcp.Config { return process(t, "tools").Patient() },
		"http":  func(t *testing.T) mcp.Config { c, _ := remote(t, nil); return c },
	} {
		t.Run(name, func(t *testing.T) {
			s, log, stop := run(t, config(t))
			log.next(t, there)
			done := make(chan error, 1)
			go func() {
				_, err := s.Call(context.Background(), tool.Call{Name: "test_hangs"})
				done <- err
			}()
			if name == "stdio" {
				log.next(t, "line=hanging")
			} else {
				<-hanging
			}
			stop()
			if err := <-done; err == nil {
				t.Error("the call went well")
			}
			if name == "stdio" {
				log.next(t, "good bye") // it was not killed for the call
			}
		})
	}
}

// What a server may not do ends the connection with a reason in the log, and not the program with its memory.
func TestBadServers(t *testing.T) {
	for kind, words := range map[string]string{
		"dead": "exit status 3",
		"long": "a message of more than 4 MiB",
	} {
		t.Run(kind, func(t *testing.T) {
			_, log, _ := run(t, process(t, kind))
			if line := log.next(t, "mcp server is not there"); !strings.Contains(line, words) {
				t.Error(line)
			}
		})
	}
	t.Run("not there", func(t *testing.T) {
		_, log, _ := run(t, mcp.Config{Command: "/nonexistent/server"})
		log.next(t, "no such file")
	})
	t.Run("a result that is too large", func(t *testing.T) {
		for name, cfg := range map[string]mcp.Config{"stdio": process(t, "tools"), "http": first(remote(t, nil)), "JSON": first(remote(t, &sdk.StreamableHTTPOptions{JSONResponse: true}))} {
			s, log, stop := run(t, cfg)
			log.next(t, there)
			if got, err := call(t, s, "test_huge", `{}`); err == nil {
				t.Errorf("%s: %d bytes", name, len(got))
			}
			stop()
		}
	})
}

func first(c mcp.Config, _ *httptest.Server) mcp.Config { return c }

func TestGarbageAndStderrAreLogged(t *testing.T) {
	_, log, _ := run(t, process(t, "chatty"))
	var lines []string
	for range 4 {
		lines = append(lines, log.next(t, "line="))
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"DEBUG no message line=Welcome!", `DEBUG no message line={"not": "closed"`, "DEBUG stderr line=eeee", "DEBUG stderr line=second \uFFFD"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%.2000s", want, all)
		}
	}
	for _, line := range lines {
		if len(line) > 600 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// A key of ours is in no child's environment, and one that the configuration names is.
func TestEnvironment(t *testing.T) {
	t.Setenv("VELA_KEYS", "key")
	t.Setenv("OPENAI_API_KEY", "key")
	t.Setenv("LANG", "C.UTF-8")
	cfg := process(t, "tools")
	cfg.Env = append(cfg.Env, "TOKEN=x=y")
	s, log, _ := run(t, cfg)
	log.next(t, there)
	got, err := call(t, s, "test_env", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, line := range strings.Split(got, "\n") {
		name, _, _ := strings.Cut(line, "=")
		have = append(have, name)
	}
	if strings.Join(have, " ") != "PATH HOME LANG TEST_SERVER TOKEN" || !strings.Contains(got, "TOKEN=x=y") {
		t.Errorf("the environment is\n%s", got)
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	state := string(stat[strings.LastIndexByte(string(stat), ')')+2])
	return state != "Z" && state != "X"
}

// gone waits until there is no such process: the kernel takes a moment to end what was killed.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); alive(pid); {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("a process lives on")
		}
	}
}

// The end of Run ends the server with all that it started.
func TestEndsProcesses(t *testing.T) {
	s, log, stop := run(t, process(t, "stays"))
	log.next(t, there)
	got, err := call(t, s, "test_child", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var pid, child int
	if _, err := fmt.Sscan(got, &pid, &child); err != nil || !alive(pid) || !alive(child) {
		t.Fatal(got, err)
	}
	stop()
	gone(t, pid)
	gone(t, child)
}

// A server over HTTP that speaks an older version of the protocol, and leaves us waiting for the stream that this one
// has: it holds nobody up who wants to end.
func TestEndsWhileConnecting(t *testing.T) {
	hangs := make(chan struct{}, 1)
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			hangs <- struct{}{}
			<-r.Context().Done()
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}`, m.ID)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		}
	}))
	defer old.Close()
	_, _, stop := run(t, mcp.Config{URL: old.URL})
	<-hangs
	stop()
}

// A server that neither answers nor ends is ended.
func TestEndsAStubbornServer(t *testing.T) {
	_, log, stop := run(t, process(t, "stubborn"))
	var pid int
	line := log.next(t, "line=pid ")
	if _, err := fmt.Sscan(line[strings.Index(line, "pid ")+4:], &pid); err != nil {
		t.Fatal(err)
	}
	stop()
	gone(t, pid)
}

// One that floods us is ended too; the filter's own test says when it is cut off before.
func TestEndsAFlood(t *testing.T) {
	_, log, stop := run(t, process(t, "flood"))
	var pid int
	line := log.next(t, "line=pid ")
	if _, err := fmt.Sscan(line[strings.Index(line, "pid ")+4:], &pid); err != nil {
		t.Fatal(err)
	}
	stop()
	gone(t, pid)
}

// One that takes nothing in any more is cut off: a call to it could not even be written.
func TestTakesNothingIn(t *testing.T) {
	cfg := process(t, "tools")
	cfg.Timeout = 300 * time.Millisecond
	s, log, _ := run(t, cfg)
	log.next(t, there)
	got, err := inTime(t, s, "test_child", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(got, &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// On a slow machine a call may end before anything of it is written: then the next one is stuck.
	for patience := time.Now().Add(30 * time.Second); !log.had("takes nothing in"); {
		if time.Now().After(patience) {
			t.Fatal("it was not cut off")
		}
		if _, err := call(t, s, "test_echo", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`); err == nil || !strings.Contains(err.Error(), "did not answer within") {
			t.Fatal(err)
		}
	}
	if line := log.next(t, "mcp server is not there"); strings.Contains(line, "the command ended") { // it was killed, which says nothing
		t.Error(line)
	}
	gone(t, pid)
	log.next(t, there)
}

// Neither the header nor the query of an address goes to the log or the model, or to another host.
func TestKeepsKeysToItself(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somewhere else %s was asked for, with %v", r.URL, r.Header)
	}))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	for url, words := range map[string]string{here.URL: "another place", nobody: "refused"} {
		_, log, _ := run(t, mcp.Config{URL: url + "/?token=secret1", Header: http.Header{"X-Key": {"secret2"}}})
		if line := log.next(t, "mcp server is not there"); strings.Contains(line, "secret") || !strings.Contains(line, words) {
			t.Error(line)
		}
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]mcp.Config{
		"no name":         {Command: "x"},
		"an underscore":   {Name: "a_b", Command: "x"},
		"a dot":           {Name: "a.b", Command: "x"},
		"too long":        {Name: strings.Repeat("a", 33), Command: "x"},
		"read_file":       {Name: "read", Command: "x"},
		"edit_file":       {Name: "edit", Command: "x"},
		"neither":         {Name: "a"},
		"both":            {Name: "a", Command: "x", URL: "http://x"},
		"a negative time": {Name: "a", Command: "x", Timeout: -1},
		"no variable":     {Name: "a", Command: "x", Env: []string{"SECRET"}},
		"not http":        {Name: "a", URL: "ftp://x"},
		"no host":         {Name: "a", URL: "http:///secret"},
		"a password":      {Name: "a", URL: "http://u:secret@x"},
	} {
		if _, err := mcp.New(cfg); err == nil || strings.Contains(strings.ToLower(err.Error()), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := mcp.New(mcp.Config{Name: "read-only", Command: "x"}); err != nil {
		t.Error(err)
	}
}
