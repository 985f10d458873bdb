package script_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"vela/gateway/script"
)

const ready2 = `> send {"type":"session.ready","payload":{"resumeToken":"secret","lastSeq":4,"recovered":false}}` + "\n" +
	`< {"type":"session.ready","payload":{"resumeToken":"<t:text>","lastSeq":"<n:number>","...":"<any>"},"seq":"<none>"}` + "\n"

func event2(seq string) string {
	return `> send {"type":"x","payload":{},"seq":` + seq + `,"ts":7}` + "\n"
}

func TestVersion2Passes(t *testing.T) {
	for name, text := range map[string]string{
		"seq and ts need not be named":  "connect protocol=vela.v2\n" + event2("1") + `< {"type":"x","payload":{}}`,
		"seq where it is named":         "connect protocol=vela.v2\n" + event2("1") + `< {"type":"x","payload":{},"seq":1}`,
		"numbers go on after ready":     "connect protocol=vela.v2\n" + ready2 + event2("5") + `< {"type":"x","payload":{},"seq":5}`,
		"a field that is not there":     "> {\"a\":1}\n< {\"a\":1,\"b\":\"<none>\"}",
		"fields that are not named":     "> {\"a\":{\"b\":1,\"c\":2}}\n< {\"a\":{\"b\":1,\"...\":\"<any>\"}}",
		"what is passed over":           "pass {\"a\":\"<any>\"}\n> {\"a\":1}\n> {\"b\":1}\n> {\"a\":2}\n< {\"b\":1}\nsilent 20ms\n> {\"a\":3}\n< {\"a\":3}",
		"resume":                        "connect protocol=vela.v2\n" + ready2 + "drop\nresume token=t after=n\n<< {\"type\":\"session.resume\",\"payload\":{\"token\":\"secret\",\"after\":4}}",
		"resume under a name, a number": "connect as a protocol=vela.v2\n" + strings.NewReplacer("> ", "a> ", "\n<", "\na<").Replace(ready2) + "resume as b token=t after=9\nb<< {\"type\":\"session.resume\",\"payload\":{\"token\":\"secret\",\"after\":9}}",
	} {
		t.Run(name, func(t *testing.T) {
			if r := play(t, text); !r.Passed() {
				t.Errorf("line %d: %v", r.Line, r)
			}
		})
	}
}

func TestVersion2Fails(t *testing.T) {
	for text, says := range map[string]string{
		"connect protocol=vela.v2\n" + event2("2") + `< "<any>"`:                                    "event 2, where 1 comes next",
		"connect protocol=vela.v2\n" + event2("1") + event2("1") + "< ... until 1":                  "event 1, where 2 comes next",
		"connect protocol=vela.v2\n" + `> send {"type":"x","payload":{},"seq":1}` + "\n< \"<any>\"": "one of seq and ts",
		"connect protocol=vela.v2\n" + ready2 + ready2 + event2("4") + `< "<any>"`:                  "event 4, where 5 comes next",
		"connect protocol=vela.v2\n" + event2("1") + `< {"type":"x","payload":{},"seq":"<none>"}`:   "unexpected field, 1",
		"> {\"a\":1}\n< {\"a\":\"<none>\"}":                                                         "unexpected field, 1",
		"> {\"a\":1,\"seq\":1}\n< {\"a\":1}":                                                        "at seq: unexpected field",
		"pass 1\n> 2\n< 3":                                                                          "expected 3",
		"connect protocol=vela.v2\nresume token=t after=1":                                          "nothing was called t",
		"connect protocol=vela.v2\n" + ready2 + "resume token=t after=x":                            "neither a whole number",
	} {
		if r := play(t, text); r.Passed() || !strings.Contains(r.Err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, r, says)
		}
	}
	for text, says := range map[string]string{
		"resume": "resume what?", "resume token=t": "resume what?", "resume x": "no option of resume", "pass {": "not JSON",
	} {
		if _, err := script.Parse("s", text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// TestTheTokenGoesWithEveryConnection, in a header.
func TestTheTokenGoesWithEveryConnection(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization") + " " + r.URL.String()
		http.Error(w, "No.", http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	parsed, err := script.Parse("s", "connect refused=401\nconnect turns=agent protocol=vela.v2 refused=401")
	if err != nil {
		t.Fatal(err)
	}
	if r := script.Run(t.Context(), parsed, script.Gateway{Address: s.URL, Token: "secret"}); !r.Passed() {
		t.Error(r)
	}
	for _, want := range []string{"Bearer secret /ws", "Bearer secret /ws?turns=agent"} {
		if got := <-asked; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
