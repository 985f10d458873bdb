package upstream

import (
	"strings"
	"testing"
)

const key = "sk-very-secret"

func TestBaseURL(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:1234/v1":       "http://localhost:1234/v1",
		"https://api.example.org/":       "https://api.example.org",
		"http://[::1]:8000":              "http://[::1]:8000",
		"":                               "",
		"localhost:1234":                 "",
		"ftp://localhost/v1":             "",
		"http:///v1":                     "",
		"http://localhost/v1?":           "",
		"http://me:" + key + "@host/v1":  "",
		"http://host/v1?key=" + key:      "",
		"http://host/v1#" + key:          "",
		"http://local host/" + key:       "",
		"http://localhost/%zz" + key:     "",
		"http://localhost\r\nX: /" + key: "",
	} {
		got, err := BaseURL(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", address, got, err)
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("the key is in %q", err)
		}
	}
}

func TestSecrets(t *testing.T) {
	s := NewSecrets("", "abcd", "abcdefgh", "zzz")
	for _, x := range []struct {
		text string
		cut  bool
		want string
	}{
		{"nothing", true, "nothing"},
		{"the key abcdefgh and abcd", false, "the key [hidden] and [hidden]"},
		{"it ends in abc", true, "it ends in "},
		{"it ends in zz", true, "it ends in "},
		{"it ends in abc", false, "it ends in abc"},
	} {
		if got := s.Hide(x.text, x.cut); got != x.want {
			t.Errorf("%q, %v: %q, want %q", x.text, x.cut, got, x.want)
		}
	}
	if got := Secrets(nil).Hide("as it is", true); got != "as it is" {
		t.Error(got)
	}
}
