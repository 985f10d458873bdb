package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
)

const key = "sk-very-secret-0123456789"

const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

func header(status int, more string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: close\r\n%s\r\n", status, http.StatusText(status), more)
}

// inBubble makes a client whose nth connection, from 0, is answered by serve, over a pipe and on a bubble's clock.
// dialled counts the connections. serve returns an error to refuse the connection itself.
func inBubble(t *testing.T, cfg Config, serve func(n int, conn net.Conn)) (c *Client, dialled *atomic.Int32) {
	t.Helper()
	cfg.BaseURL = "http://models.example:1234/v1"
	cfg.Header = http.Header{"Authorization": {"Bearer " + key}}
	cfg.Secrets = []string{key}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dialled = &atomic.Int32{}
	var serving sync.WaitGroup
	c.own.DialContext = func(context.Context, string, string) (net.Conn, error) {
		n := int(dialled.Add(1)) - 1
		if serve == nil {
			return nil, errors.New("dial tcp 10.1.2.3:1234: connect: connection refused")
		}
		ours, theirs := net.Pipe()
		serving.Go(func() {
			defer func() { _ = theirs.Close() }()
			req, err := http.ReadRequest(bufio.NewReader(theirs))
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err == nil {
				serve(n, theirs)
			}
		})
		return ours, nil
	}
	t.Cleanup(serving.Wait)
	t.Cleanup(c.Close)
	return c, dialled
}

// say writes, and says whether anybody is there to read it.
func say(conn net.Conn, text string) bool {
	_, err := io.WriteString(conn, text)
	return err == nil
}

// hang says nothing until the other side is gone.
func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func fetch(ctx context.Context, c *Client) (data []string, failed error) {
	for e, err := range c.Open(ctx, Request{Path: "/chat", Body: []byte(`{}`), Last: func(e Event) bool { return string(e.Data) == "last" }}) {
		if err != nil {
			return data, err
		}
		data = append(data, string(e.Data))
	}
	return data, nil
}

// shown holds an error to what may be shown to anybody, and to what an operator gets to see.
func shown(t *testing.T, err error, code protocol.Code, words, operator string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T)", err, err)
	}
	if e.Code() != code || e.Error() != words {
		t.Errorf("got %s %q, want %s %q", e.Code(), e, code, words)
	}
	cause := errors.Unwrap(err)
	if cause == nil || !strings.Contains(cause.Error(), operator) {
		t.Errorf("the operator sees %v, want %q in it", cause, operator)
	}
	for _, text := range []string{fmt.Sprintf("%v", err), fmt.Sprintf("%+v", cause), Operator(err)} {
		if strings.Contains(text, key) || strings.Contains(text, key[:12]) {
			t.Errorf("a key is in %q", text)
		}
	}
	for _, no := range []string{"10.1.2.3", "models.example", "free words"} {
		if strings.Contains(e.Error(), no) {
			t.Errorf("%q is in %q", no, e)
		}
	}
}

func TestWhatAServerMayAnswer(t *testing.T) {
	padding := strings.Repeat("x", 1020)
	for name, c := range map[string]struct {
		answers  []string // to one attempt after the other; the last one to all that follow
		data     []string
		attempts int
		took     [2]time.Duration // at least, at most
		code     protocol.Code
		words    string
		operator string
	}{
		"a stream":                  {answers: []string{ok + "data: a\n\ndata: b\n\n"}, data: []string{"a", "b"}, attempts: 1},
		"without a content type":    {answers: []string{header(200, "") + "data: a\n\n"}, data: []string{"a"}, attempts: 1},
		"what follows the last one": {answers: []string{ok + "data: last\n\ndata: more\n\n"}, data: []string{"last"}, attempts: 1},
		"no stream": {
			answers: []string{header(200, "Content-Type: application/json; charset=utf-8\r\n") + `{"choices":"free words"}`}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model does not answer with a stream.", operator: `200 OK: {"choices":"free words"}`,
		},
		"a wrong key": {
			answers: []string{header(401, "") + `free words: wrong key ` + key}, attempts: 1,
			code: protocol.CodeAgentUnavailable, words: "The model does not accept the gateway's key.", operator: "401 Unauthorized: free words: wrong key [hidden]",
		},
		"a forbidden model": {
			answers: []string{header(403, "") + `free words`}, attempts: 1,
			code: protocol.CodeAgentUnavailable, words: "The model does not accept the gateway's key.", operator: "403 Forbidden",
		},
		"no such model": {
			answers: []string{header(404, "") + `model x not found`}, attempts: 1,
			code: protocol.CodeAgentUnavailable, words: "There is no such model, or its address is wrong.", operator: "model x not found",
		},
		"a bad request": {
			answers: []string{header(400, "") + `{"error":{"message":"free words","type":"invalid_request_error","code":"context_length_exceeded"}}`}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model answered with an error (400, context_length_exceeded).", operator: "free words",
		},
		"Anthropic's object": {
			answers: []string{header(413, "") + `{"type":"error","error":{"type":"request_too_large","message":"free words"}}`}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model answered with an error (413, request_too_large).", operator: "free words",
		},
		"a number for a code": {
			answers: []string{header(400, "") + `{"error":{"type":"BadRequest free words","code":400}}`}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model answered with an error (400).", operator: "free words",
		},
		"a word for an error": {
			answers: []string{header(400, "") + `{"error":"free words"}`}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model answered with an error (400).", operator: "free words",
		},
		"a long error": {
			answers: []string{header(400, "") + padding + key + padding}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model answered with an error (400).", operator: "xxx[hid…",
		},
		"cut off in the middle of a key": {
			answers: []string{header(400, "Content-Length: 999\r\n") + "free words: " + key[:15]}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model answered with an error (400).", operator: "free words: ",
		},
		"a key where the reading ends": {
			answers: []string{header(400, "") + strings.Repeat(key, maxRefusal/len(key)+9)}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model answered with an error (400).", operator: "[hidden][hidden]",
		},
		"too many requests, then a stream": {
			answers: []string{header(429, "Retry-After: 3\r\n"), ok + "data: a\n\n"}, data: []string{"a"}, attempts: 2,
			took: [2]time.Duration{3 * time.Second, 3 * time.Second},
		},
		"a date to come back at": {
			answers: []string{header(503, "Retry-After: Sat, 01 Jan 2000 00:00:07 GMT\r\n"), ok + "data: a\n\n"}, data: []string{"a"}, attempts: 2,
			took: [2]time.Duration{7 * time.Second, 7 * time.Second}, // a bubble begins at midnight
		},
		"a date in the past": {
			answers: []string{header(503, "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n"), ok + "data: a\n\n"}, data: []string{"a"}, attempts: 2,
			took: [2]time.Duration{250 * time.Millisecond, 500 * time.Millisecond},
		},
		"too long to come back": {
			answers: []string{header(429, "Retry-After: 31\r\n") + "free words"}, attempts: 1,
			code: protocol.CodeAgentUnavailable, words: "The model has too many requests. Try again later.", operator: "free words",
		},
		"too many requests for ever": {
			answers: []string{header(429, "")}, attempts: 3, took: [2]time.Duration{750 * time.Millisecond, 1500 * time.Millisecond},
			code: protocol.CodeAgentUnavailable, words: "The model has too many requests. Try again later.", operator: "429 Too Many Requests",
		},
		"overloaded for ever": {
			answers: []string{header(529, "") + `{"type":"error","error":{"type":"overloaded_error"}}`}, attempts: 3,
			took: [2]time.Duration{750 * time.Millisecond, 1500 * time.Millisecond},
			code: protocol.CodeAgentUnavailable, words: "The model is too busy, or not there for now. Try again later.", operator: "529",
		},
		"cut before the first event": {
			answers: []string{"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n: wait\n\n", ok + "data: a\n\n"}, data: []string{"a"}, attempts: 2,
			took: [2]time.Duration{250 * time.Millisecond, 500 * time.Millisecond},
		},
		"cut after the first event": {
			answers: []string{"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ndata: a\n\n"}, data: []string{"a"}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model's answer broke off.", operator: "unexpected EOF",
		},
		"closed without an answer": {
			answers: []string{"", ok + "data: a\n\n"}, data: []string{"a"}, attempts: 2, took: [2]time.Duration{250 * time.Millisecond, 500 * time.Millisecond},
		},
		"no HTTP": {
			answers: []string{"220 smtp\r\n\r\n"}, attempts: 3, took: [2]time.Duration{750 * time.Millisecond, 1500 * time.Millisecond},
			code: protocol.CodeAgentUnavailable, words: "The model cannot be reached.", operator: "malformed HTTP",
		},
		"an endless line": {
			answers: []string{ok + "data: a\n\ndata: " + strings.Repeat("x", maxLine)}, data: []string{"a"}, attempts: 1,
			code: protocol.CodeAgentFailed, words: "The model's answer cannot be read.", operator: ErrLongLine.Error(),
		},
		"a redirect to another host": {
			answers: []string{header(307, "Location: http://evil.example/v1/chat\r\n")}, attempts: 1,
			code: protocol.CodeAgentUnavailable, words: "The model cannot be reached.", operator: errMoved.Error(),
		},
		"a redirect to another port": {
			answers: []string{header(308, "Location: http://models.example:9/v1/chat\r\n")}, attempts: 1,
			code: protocol.CodeAgentUnavailable, words: "The model cannot be reached.", operator: errMoved.Error(),
		},
		"a redirect that would become a GET": {
			answers: []string{header(302, "Location: /v2/chat\r\n")}, attempts: 1,
			code: protocol.CodeAgentUnavailable, words: "The model cannot be reached.", operator: errMoved.Error(),
		},
		"a redirect on the same host": {
			answers: []string{header(307, "Location: /v2/chat\r\n"), ok + "data: a\n\n"}, data: []string{"a"}, attempts: 2,
		},
		"redirects for ever": {
			answers: []string{header(307, "Location: /v2/chat\r\n")}, attempts: 4,
			code: protocol.CodeAgentUnavailable, words: "The model cannot be reached.", operator: errMoved.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, attempts := inBubble(t, Config{}, func(n int, conn net.Conn) {
					say(conn, c.answers[min(n, len(c.answers)-1)])
				})
				begin := time.Now()
				data, err := fetch(t.Context(), client)
				took := time.Since(begin)
				if !slices.Equal(data, c.data) || int(attempts.Load()) != c.attempts {
					t.Errorf("got %q after %d attempts, want %q after %d", data, attempts.Load(), c.data, c.attempts)
				}
				if took < c.took[0] || took > c.took[1] {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if c.code != "" {
					shown(t, err, c.code, c.words, c.operator)
				} else if err != nil {
					t.Errorf("got %v: %v", err, errors.Unwrap(err))
				}
			})
		})
	}
}

func TestOnlyWhatMayPassIsRepeated(t *testing.T) {
	again := []int{408, 409, 429, 500, 502, 503, 504, 529}
	for status := 400; status < 600; status++ {
		if temporary(status) != slices.Contains(again, status) {
			t.Errorf("%d: %v", status, temporary(status))
		}
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, attempts := inBubble(t, Config{}, nil)
		_, err := fetch(t.Context(), client)
		shown(t, err, protocol.CodeAgentUnavailable, "The model cannot be reached.", "dial tcp 10.1.2.3:1234: connect: connection refused")
		if attempts.Load() != 3 {
			t.Errorf("%d attempts", attempts.Load())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, attempts := inBubble(t, Config{Retries: -1}, nil)
		if _, err := fetch(t.Context(), client); err == nil || attempts.Load() != 1 {
			t.Errorf("%v after %d attempts", err, attempts.Load())
		}
	})
}

// The time limits, on a bubble's clock. A server that says nothing is not asked again: the person has waited already.
func TestAServerThatSaysNothing(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   Timeouts
		serve func(conn net.Conn)
		data  []string
		took  time.Duration
		words string
	}{
		"not even a header": {
			serve: hang,
			took:  60 * time.Second, words: "The model did not answer in time.",
		},
		"nothing but comments": {
			serve: func(conn net.Conn) {
				say(conn, ok)
				for say(conn, ": wait\n\n") {
					time.Sleep(time.Second)
				}
			},
			took: 60 * time.Second, words: "The model did not answer in time.",
		},
		"nothing but the beginning of a refusal": {
			cfg: Timeouts{First: 2 * time.Second},
			serve: func(conn net.Conn) {
				say(conn, "HTTP/1.1 500 Oh\r\nContent-Length: 10\r\n\r\nx")
				hang(conn)
			},
			took: 2 * time.Second, words: "The model did not answer in time.",
		},
		"nothing after a while": {
			serve: func(conn net.Conn) {
				say(conn, ok)
				for range 3 {
					time.Sleep(29 * time.Second)
					say(conn, "data: a\n\n")
				}
				hang(conn)
			},
			data: []string{"a", "a", "a"}, took: (3*29 + 30) * time.Second, words: "The model stopped in the middle of its answer.",
		},
		"an event that never ends": {
			cfg: Timeouts{Between: time.Second},
			serve: func(conn net.Conn) {
				say(conn, ok+"data: a\n\n")
				for say(conn, "data: b\n") {
					time.Sleep(100 * time.Millisecond)
				}
			},
			data: []string{"a"}, took: time.Second, words: "The model stopped in the middle of its answer.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, attempts := inBubble(t, Config{Timeouts: c.cfg}, func(_ int, conn net.Conn) { c.serve(conn) })
				begin := time.Now()
				data, err := fetch(t.Context(), client)
				if took := time.Since(begin); took != c.took || attempts.Load() != 1 {
					t.Errorf("it took %v and %d attempts, want %v and 1", took, attempts.Load(), c.took)
				}
				if !slices.Equal(data, c.data) {
					t.Errorf("got %q, want %q", data, c.data)
				}
				shown(t, err, protocol.CodeAgentTimeout, c.words, "no event came within")
			})
		})
	}
}

func TestASlowReaderIsNotTheServersSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := inBubble(t, Config{}, func(_ int, conn net.Conn) { say(conn, ok+"data: a\n\ndata: b\n\n") })
		n := 0
		for _, err := range client.Open(t.Context(), Request{Path: "/chat"}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			time.Sleep(time.Hour)
		}
		if n != 2 {
			t.Errorf("%d events", n)
		}
	})
}

// What ends with its context: waiting for an answer, for an event, and for the next attempt.
func TestEverythingEndsWithTheContext(t *testing.T) {
	gone := errors.New("the person has hung up")
	for name, serve := range map[string]func(int, net.Conn){
		"before the answer":  func(_ int, conn net.Conn) { hang(conn) },
		"between two events": func(_ int, conn net.Conn) { say(conn, ok+"data: a\n\n"); hang(conn) },
		"between two attempts": func(_ int, conn net.Conn) {
			say(conn, header(503, "Retry-After: 20\r\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				client, _ := inBubble(t, Config{}, serve)
				begin := time.Now()
				time.AfterFunc(10*time.Second, func() { cancel(gone) })
				if _, err := fetch(ctx, client); !errors.Is(err, gone) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(begin); took != 10*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		client, attempts := inBubble(t, Config{}, nil)
		if _, err := fetch(ctx, client); !errors.Is(err, gone) || attempts.Load() != 0 {
			t.Errorf("cancelled before: %v after %d attempts", err, attempts.Load())
		}
	})
}

// Over real sockets: the server sees at once that nobody wants its answer any more, even while the reader is busy with
// an event.
func TestTheServerSeesTheEnd(t *testing.T) {
	for name, leave := range map[string]func(cancel func(), seen <-chan struct{}) bool{
		"the reader leaves": func(func(), <-chan struct{}) bool { return false },
		"cancelled in the middle of an event": func(cancel func(), seen <-chan struct{}) bool {
			cancel()
			<-seen // the reader has not come back yet
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "data: a\n\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(seen)
			}))
			t.Cleanup(server.Close)
			client, err := New(Config{BaseURL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, err := range client.Open(ctx, Request{Path: "/", Body: []byte("{}")}) {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					continue
				}
				if !leave(cancel, seen) {
					break
				}
			}
			<-seen
		})
	}
}

// The end of an answer is waited for a moment, so that the connection can be used again; and no longer than that.
func TestTheEndBehindTheLastEvent(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\ndata: last\n\n\r\n"
	for name, c := range map[string]struct {
		end         time.Duration
		took        time.Duration
		connections int32
	}{
		"comes":         {10 * time.Millisecond, 20 * time.Millisecond, 1},
		"does not come": {time.Hour, 40 * time.Millisecond, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, connections := inBubble(t, Config{}, func(_ int, conn net.Conn) {
					for requests := bufio.NewReader(conn); say(conn, chunked); {
						time.Sleep(c.end)
						if !say(conn, "0\r\n\r\n") {
							return
						}
						req, err := http.ReadRequest(requests)
						if err != nil {
							return
						}
						_, _ = io.Copy(io.Discard, req.Body)
					}
				})
				begin := time.Now()
				for range 2 {
					if data, err := fetch(t.Context(), client); err != nil || !slices.Equal(data, []string{"last"}) {
						t.Errorf("got %q, %v", data, err)
					}
				}
				if took := time.Since(begin); took != c.took || connections.Load() != c.connections {
					t.Errorf("it took %v and %d connections, want %v and %d", took, connections.Load(), c.took, c.connections)
				}
			})
		})
	}
}

// Over real sockets: connections are used again, and HTTP/2 is spoken where it is offered.
func TestConnectionsAreKept(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if (r.ProtoMajor == 2) != http2 {
					t.Errorf("spoken was %s", r.Proto)
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "data: a\n\n")
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, "data: last\n\n")
			}))
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					connections.Add(1)
				}
			}
			server.EnableHTTP2 = http2
			if http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			client, err := New(Config{BaseURL: server.URL + "/"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			client.endWait = time.Hour // the end comes, however slow the machine is
			if http2 {
				client.own.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				client.own.TLSClientConfig.NextProtos = nil
			}
			for range 5 {
				if data, err := fetch(t.Context(), client); err != nil || !slices.Equal(data, []string{"a", "last"}) {
					t.Fatalf("got %q, %v", data, err)
				}
			}
			if connections.Load() != 1 {
				t.Errorf("%d connections", connections.Load())
			}
		})
	}
}

func TestGet(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		body   string
		status int
		words  string
	}{
		"a document": {answer: header(200, "") + "{}", body: "{}"},
		"a refusal":  {answer: header(404, "") + "x", status: 404, words: "There is no such model, or its address is wrong."},
		"too long":   {answer: header(200, "") + strings.Repeat("x", maxDocument+1), words: "The model's answer is too long."},
		"cut off":    {answer: header(200, "Content-Length: 9\r\n") + "{}", words: "The model's answer broke off."},
		"nothing":    {answer: "", words: "The model cannot be reached."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := inBubble(t, Config{}, func(_ int, conn net.Conn) { say(conn, c.answer) })
				body, err := client.Get(t.Context(), "/models")
				var e *Error
				if errors.As(err, &e) {
					if e.Status() != c.status || e.Error() != c.words {
						t.Errorf("got %d %q, want %d %q", e.Status(), e, c.status, c.words)
					}
				} else if string(body) != c.body || c.words != "" {
					t.Errorf("got %q, %v", body, err)
				}
			})
		})
	}
}

func TestWrongConfigurations(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no URL":          {},
		"no scheme":       {BaseURL: "localhost:1234"},
		"another scheme":  {BaseURL: "ftp://localhost/v1"},
		"no host":         {BaseURL: "http:///v1"},
		"a user":          {BaseURL: "http://me:" + key + "@localhost/v1"},
		"a query":         {BaseURL: "http://localhost/v1?key=" + key},
		"a fragment":      {BaseURL: "http://localhost/v1#" + key},
		"nonsense":        {BaseURL: "http://local host/" + key},
		"a broken escape": {BaseURL: "http://localhost/%zz" + key},
		"a line end":      {BaseURL: "http://localhost", Header: http.Header{"Authorization": {key + "\n"}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("%s: the key is in %q", name, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "1.5": 1500 * time.Millisecond, "-1": 0, "soon": 0, "NaN": 0,
		"1e300": 1e6 * time.Second, "Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}
