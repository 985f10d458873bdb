package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"nhooyr.io/websocket"
)

// What is here needs real sockets: where a connection leads is looked at when it is made.

// live serves on a real socket.
func live(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func (w *works) add(url, key string) string {
	w.Helper()
	s := w.must(w.Add(w.Context(), "", url, key))
	w.must(w.Connect(w.Context(), s.ID))
	return s.ID
}

// No redirect leads around the check of addresses, and none takes the key to another host.
func TestRedirects(t *testing.T) {
	elsewhere := live(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != "" {
			t.Errorf("another host got the key: %v", r.Header)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, ":\n\n")
		<-r.Context().Done()
	})
	to := map[string]string{
		"/metadata": "http://169.254.169.254/latest/meta-data", "/file": "file:///etc/passwd", "/elsewhere": elsewhere, "/around": "/around",
		"/here": "/stream", "/user": "http://user:pass@127.0.0.1/",
	}
	here := live(t, func(w http.ResponseWriter, r *http.Request) {
		if next, ok := to[r.URL.Path]; ok {
			http.Redirect(w, r, next, http.StatusFound)
			return
		}
		if r.URL.Path != "/stream" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, ":\n\n")
		<-r.Context().Done()
	})
	w := newWorks(t, Config{})
	forbidden := string(ErrForbidden)
	type wish struct {
		path, key string
		state     State
		says      string
	}
	wishes := map[string]wish{} // by the ids of the sources
	for _, x := range []wish{
		{"/metadata", "", Failed, forbidden}, {"/file", "", Failed, forbidden}, {"/user", "", Failed, forbidden},
		{"/around", "", Failed, "again and again"}, {"/here", "secret", Connected, ""}, {"/elsewhere", "", Connected, ""},
		{"/elsewhere", "secret", Failed, "another host"},
	} {
		for _, scheme := range []string{"http", "ws"} {
			if scheme == "ws" && x.state == Connected {
				continue // they are no WebSockets
			}
			wishes[w.add(scheme+strings.TrimPrefix(here, "http")+x.path, x.key)] = x
		}
	}
	for id, x := range wishes {
		s := w.until(id, func(s Source) bool { return s.State == Failed || s.State == Connected })
		if s.State != x.state || !strings.Contains(s.Error, x.says) || strings.Contains(s.Error, "secret") || strings.Contains(s.Error, "169") {
			t.Errorf("%s with the key %q: %s %q", s.URL, x.key, s.State, s.Error)
		}
	}
	w.end() // before the servers, which wait for who is connected
}

// Whatever the others do, each source is heard.
func TestSourcesDoNotNoticeOneAnother(t *testing.T) {
	w := newWorks(t, Config{})
	stalls := w.add(live(t, page(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, "data: {\"type\":")
		<-r.Context().Done()
	}))+"/events", "")
	floods := w.add("ws"+strings.TrimPrefix(live(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		for c.Write(r.Context(), websocket.MessageText, []byte(`{"type":"flood"}`)) == nil {
		}
	}), "http"), "")
	restarts := w.add("ws"+strings.TrimPrefix(live(t, func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, nil); err == nil {
			_ = c.CloseNow()
		}
	}), "http"), "")
	next := make(chan int)
	quiet := w.add(live(t, page(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range next {
			write(w, fmt.Sprintf("data: {\"type\":\"x\",\"payload\":{\"i\":%d,\"text\":\"\xff\"}}\n\n", i))
		}
	}))+"/events", "")
	for i := range 100 {
		next <- i
		if got, want := w.heard(quiet, i+1)[i], fmt.Sprintf("x {\"i\":%d,\"text\":\"\ufffd\"}", i); got != want {
			t.Errorf("signal %d is %s", i, got)
		}
	}
	close(next)
	w.until(floods, func(s Source) bool { return s.State == Connected && strings.Contains(s.Error, "were dropped") })
	w.until(restarts, func(s Source) bool { return strings.Contains(s.Error, "times in a row") })
	w.is(stalls, Connected)
	w.end() // before the servers, which wait for who is connected
}
