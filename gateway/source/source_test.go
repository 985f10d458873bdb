package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDetect(t *testing.T) {
	for address, want := range map[string]Protocol{
		"midi://roland/tr-8/1": MIDI, "MIDI://x/openclaw/1": MIDI,
		"ws://localhost:18789": Gateway, "http://localhost:18789/": Gateway, "wss://openclaw.example.org": Gateway, "https://My-OpenClaw.example": Gateway,
		"ws://localhost:9100": WebSocket, " WSS://example.org/feed ": WebSocket, "wss://api.anthropic.com": WebSocket,
		"https://api.anthropic.com": Anthropic, "https://API.ANTHROPIC.COM/v1": Anthropic,
		"http://localhost:1234": SSE, "https://example.org/events": SSE, "": SSE,
	} {
		if got := Detect(address); got != want {
			t.Errorf("%q is %s, want %s", address, got, want)
		}
	}
}

var services = []Found{
	{ID: "local:claude-code", Label: "Claude Code", Protocol: SSE, URL: "/__signals__/stream", Available: true},
	{ID: "local:openclaw", Label: "OpenClaw", Protocol: Gateway, URL: "ws://127.0.0.1:18789", NeedsKey: true},
	{ID: "local:ollama", Label: "Ollama", Protocol: OpenAI, URL: "http://127.0.0.1:11434", Available: true, Models: []string{"a", "b"}},
}

// states are sources in a few characters.
func states(r *Registry) []string {
	var all []string
	for _, s := range r.List(time.Unix(1, 0)) {
		said := fmt.Sprintf("%s %s %s %s", strings.TrimPrefix(s.ID, "local:"), s.State, strings.Join(s.Models, ","), s.Model)
		if s.Error != "" {
			said += " " + s.Error
		}
		all = append(all, said)
	}
	return all
}

func TestSynchronisation(t *testing.T) {
	changed := func(change func([]Found)) []Found {
		f := slices.Clone(services)
		change(f)
		return f
	}
	for name, x := range map[string]struct {
		before func(*Registry)
		found  []Found
		want   []string
	}{
		"new services get entries, there or not": {
			nil, services, []string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama disconnected a,b a"},
		},
		"known ones get their models": {
			func(r *Registry) { r.Update(services) }, changed(func(f []Found) { f[2].Models = []string{"b", "c"} }),
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama disconnected b,c b"},
		},
		"the chosen model stays": {
			func(r *Registry) { r.Update(services); _ = r.Choose("local:ollama", "b") }, changed(func(f []Found) { f[2].Models = []string{"c", "b"} }),
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama disconnected c,b b"},
		},
		"those that are gone are unavailable, and keep their models": {
			func(r *Registry) { r.Update(services) }, services[:1],
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama unavailable a,b a"},
		},
		"those that answer no more are unavailable": {
			func(r *Registry) { r.Update(services) }, changed(func(f []Found) { f[2].Available, f[2].Models = false, nil }),
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama unavailable a,b a"},
		},
		"those that come back are ready": {
			func(r *Registry) { r.Update(services) }, changed(func(f []Found) { f[1].Available = true }),
			[]string{"claude-code disconnected  ", "openclaw disconnected  ", "ollama disconnected a,b a"},
		},
		"one that failed keeps saying so": {
			func(r *Registry) { r.Update(services); _ = r.Set("local:ollama", Failed, "broken") }, services,
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama error a,b a broken"},
		},
		"until it is gone": {
			func(r *Registry) { r.Update(services); _ = r.Set("local:ollama", Failed, "broken") }, services[:2],
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama unavailable a,b a"},
		},
		"a connected one is not touched, models included": {
			func(r *Registry) { r.Update(services); _ = r.Set("local:ollama", Connected, "") }, changed(func(f []Found) { f[2].Models = []string{"c"} }),
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama connected a,b a"},
		},
		"nor one that connects": {
			func(r *Registry) { r.Update(services); _ = r.Set("local:ollama", Connecting, "") }, changed(func(f []Found) { f[2].Available = false }),
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama connecting a,b a"},
		},
		"not even when it is gone": {
			func(r *Registry) { r.Update(services); _ = r.Set("local:ollama", Connected, "") }, services[:2],
			[]string{"claude-code disconnected  ", "openclaw unavailable  ", "ollama connected a,b a"},
		},
		"remote ones are nobody's business": {
			func(r *Registry) { _, _ = r.Add("", "http://example.org/x") }, nil, []string{"remote:1 disconnected  "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r Registry
			if x.before != nil {
				x.before(&r)
			}
			r.Update(x.found)
			if got := states(&r); !slices.Equal(got, x.want) {
				t.Errorf("got  %q\nwant %q", got, x.want)
			}
		})
	}
}

func TestColours(t *testing.T) {
	var r Registry
	r.Update(services)
	var first []string
	for _, s := range r.List(time.Now()) {
		first = append(first, s.Colour)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(first)))) != len(services) {
		t.Errorf("local sources have the colours %v", first)
	}
	var again Registry
	again.Update([]Found{services[2], services[0], {ID: "local:midi:1", Available: true}, {ID: "local:midi:2", Available: true}})
	list := again.List(time.Now())
	if list[0].Colour != first[2] || list[1].Colour != first[0] || list[2].Colour != list[3].Colour {
		t.Errorf("a local source's colour is its own, whenever it is found: %v, then %+v", first, list)
	}
	for i := range 2*len(palette) + 1 {
		s, err := r.Add("", fmt.Sprintf("http://example.org/%d", i))
		if err != nil || s.Colour != palette[i%len(palette)] {
			t.Errorf("the remote source %d is %q, %v", i, s.Colour, err)
		}
		if i == 2 { // the next does not get the colour of one that is gone
			if err := r.Remove(s.ID); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRemoteSources(t *testing.T) {
	var r Registry
	r.Update(services)
	s, err := r.Add(" Lab ", " wss://openclaw.example.org/gw ")
	if err != nil || s.Name != "Lab" || s.URL != "wss://openclaw.example.org/gw" || s.Protocol != Gateway || s.Local || !s.NeedsKey || s.State != Disconnected {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := r.Add("", "http://example.org:99/x"); err != nil || s.Name != "example.org:99" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, id := range []string{"local:ollama", "remote:9"} {
		if err := r.Remove(id); err == nil {
			t.Errorf("%s was removed", id)
		}
	}
	for what, err := range map[string]error{
		"state": r.Set("x", Connected, ""), "upgrade": r.Upgrade("x", OpenAI, nil), "model": r.Choose("x", "m"), "key": r.SetKey("x", "k", false),
	} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("the %s of no source: %v", what, err)
		}
	}
	if err := r.Choose("local:ollama", "z"); err == nil {
		t.Error("a model that is not there was chosen")
	}
	if err := r.Upgrade("remote:2", OpenAI, []string{"m"}); err != nil || r.find("remote:2").Model != "m" || r.find("remote:2").Protocol != OpenAI {
		t.Errorf("%+v, %v", r.find("remote:2"), err)
	}
	if _, err := r.Add(strings.Repeat("n", 129), "http://example.org"); err == nil {
		t.Error("a name of 129 characters was taken")
	}
	for range maxRemote - 2 {
		if _, err := r.Add("", "http://example.org"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Add("", "http://example.org"); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
}

func TestKeys(t *testing.T) {
	var r Registry
	r.Update(services)
	const id = "local:openclaw"
	step := func(key string, found bool, wantKey string, wantFilled bool) {
		t.Helper()
		if err := r.SetKey(id, key, found); err != nil {
			t.Error(err)
		}
		s := r.find(id).Source
		if r.Key(id) != wantKey || s.HasKey != (wantKey != "") || s.TokenAutoFilled != wantFilled {
			t.Errorf("after %q: the key %q, %+v", key, r.Key(id), s)
		}
	}
	step("found", true, "found", true)
	step("other", true, "found", true)
	step("given", false, "given", false)
	step("found", true, "given", false) // a person's goes first
	step("", false, "", false)
	for _, key := range []string{"two\nlines", strings.Repeat("k", maxKey+1)} {
		if err := r.SetKey(id, key, false); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("the key %.10q: %v", key, err)
		}
	}
	step("secret", false, "secret", false)
	if shown := fmt.Sprintf("%+v", r.List(time.Now())); strings.Contains(shown, "secret") {
		t.Errorf("the list shows a key: %s", shown)
	}
	if r.Key("none") != "" {
		t.Error("no source has a key")
	}
}

// Two sources connect by themselves: just these, and only when they are there.
func TestAutoConnect(t *testing.T) {
	for _, x := range []struct {
		s    Source
		want bool
	}{
		{Source{ID: "local:claude-code", State: Disconnected}, true}, {Source{ID: "local:claude-code", State: Unavailable}, false}, {Source{ID: "local:claude-code", State: Connected}, false},
		{Source{ID: "local:openclaw", State: Disconnected}, false}, {Source{ID: "local:openclaw", State: Disconnected, HasKey: true}, true}, {Source{ID: "local:openclaw", State: Unavailable, HasKey: true}, false},
		{Source{ID: "local:ollama", State: Disconnected, HasKey: true}, false}, {Source{ID: "remote:1", State: Disconnected, HasKey: true}, false},
	} {
		if got := AutoConnect(x.s); got != x.want {
			t.Errorf("%+v: %v", x.s, got)
		}
	}
}

func TestEventsPerSecond(t *testing.T) {
	var r Registry
	r.Update(services)
	at := func(ms int) time.Time { return time.Unix(1_700_000_000, 0).Add(time.Duration(ms) * time.Millisecond) }
	want := func(ms, want int) {
		t.Helper()
		if got := r.List(at(ms))[2].EventsPerSecond; got != want {
			t.Errorf("after %d ms it is %d, want %d", ms, got, want)
		}
	}
	want(0, 0)
	for ms := range 500 {
		r.Count("local:ollama", 1, at(ms))
	}
	r.Count("none", 1, at(0))
	want(499, 500)
	want(999, 500)
	want(1000, 400)
	want(1450, 0)
	r.Count("local:ollama", 1, at(60_000))
	want(60_000, 1)
	want(61_000, 0)
	r.Count("local:ollama", 1, at(59_000)) // a clock that goes back spoils nothing
	want(61_000, 1)
}
