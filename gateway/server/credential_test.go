package server

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestTakeCredential(t *testing.T) {
	for _, c := range []struct {
		name           string
		authorization  []string
		protocols      []string
		want           credential
		protocolsAfter []string
	}{
		{"nothing", nil, nil, credential{}, nil},
		{"a header", []string{"Bearer a.b.c"}, nil, credential{text: "a.b.c"}, nil},
		{"a header, written otherwise", []string{"bEARER   a.b.c "}, nil, credential{text: "a.b.c"}, nil},
		{"another scheme", []string{"Basic abc"}, nil, credential{text: "abc", bad: true}, nil},
		{"no scheme", []string{"a.b.c"}, nil, credential{bad: true}, nil},
		{"no token", []string{"Bearer "}, nil, credential{bad: true}, nil},
		{"an empty header", []string{""}, nil, credential{bad: true}, nil},
		{"two headers", []string{"Bearer a", "Bearer b"}, nil, credential{text: "b", bad: true}, nil},
		{"protocols alone", nil, []string{"vela.v2, vela.v1"}, credential{}, []string{"vela.v2, vela.v1"}},
		{"an entry", nil, []string{"vela.v1, vela.token.a.b.c"}, credential{text: "a.b.c", browser: true}, []string{"vela.v1"}},
		{"an entry before others, in lines", nil, []string{"vela.token.a", " vela.v2 ,vela.v1"}, credential{text: "a", browser: true}, []string{"vela.v2, vela.v1"}},
		{"an entry in capitals", nil, []string{"vela.v1,VELA.TOKEN.a"}, credential{text: "a", browser: true}, []string{"vela.v1"}},
		{"an entry alone", nil, []string{"vela.token.a"}, credential{text: "a", browser: true, alone: true}, nil},
		{"an empty entry", nil, []string{"vela.v1, vela.token."}, credential{browser: true, bad: true}, []string{"vela.v1"}},
		{"two entries", nil, []string{"vela.v1, vela.token.a, vela.token.b"}, credential{text: "a", browser: true, bad: true}, []string{"vela.v1"}},
		{"a header and an entry", []string{"Bearer a"}, []string{"vela.v1, vela.token.a"}, credential{text: "a", browser: true, bad: true}, []string{"vela.v1"}},
		{"nearly an entry", nil, []string{"vela.token, vela.tokena"}, credential{}, []string{"vela.token, vela.tokena"}},
	} {
		h := http.Header{}
		if c.authorization != nil {
			h["Authorization"] = c.authorization
		}
		if c.protocols != nil {
			h["Sec-Websocket-Protocol"] = c.protocols
		}
		if got := takeCredential(h); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if h.Get("Authorization") != "" || !reflect.DeepEqual(h["Sec-Websocket-Protocol"], c.protocolsAfter) {
			t.Errorf("%s: left in the headers: %v", c.name, h)
		}
	}
}

func FuzzCredential(f *testing.F) {
	f.Add("Bearer a.b.c", "")
	f.Add("", "vela.v1, vela.token.a.b.c")
	f.Add("Basic x", "vela.token.,vela.token.x,,\t")
	f.Fuzz(func(t *testing.T, authorization, protocols string) {
		h := http.Header{}
		if authorization != "" {
			h["Authorization"] = []string{authorization}
		}
		if protocols != "" {
			h["Sec-Websocket-Protocol"] = []string{protocols}
		}
		c := takeCredential(h)
		if _, left := h["Authorization"]; left {
			t.Error("the header is left")
		}
		for _, name := range strings.Split(h.Get("Sec-WebSocket-Protocol"), ",") {
			if strings.HasPrefix(strings.ToLower(strings.Trim(name, " \t")), tokenEntry) {
				t.Errorf("an entry is left: %q", name)
			}
		}
		if !c.bad && !c.none() && !strings.Contains(authorization, c.text) && !strings.Contains(protocols, c.text) {
			t.Errorf("%q comes from nowhere", c.text)
		}
		if c.browser != strings.Contains(strings.ToLower(protocols), tokenEntry) && c.browser {
			t.Error("an entry that is not there")
		}
		if again := takeCredential(h); !again.none() {
			t.Errorf("it can be taken twice: %+v", again)
		}
	})
}
