package auth_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"vela/gateway/auth"
)

const (
	mainSecret  = "0123456789abcdef0123456789abcdef"
	otherSecret = "fedcba9876543210fedcba9876543210"
)

func authority(t *testing.T, keys string) *auth.Authority {
	t.Helper()
	parsed, err := auth.ParseKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *auth.Authority, r auth.Rights) string {
	t.Helper()
	token, _, err := a.Issue("main", r)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// forge parts a good token, changes it, and puts it together again; sign is nil for a signature that is kept.
func forge(t *testing.T, token string, header, payload func(string) string, sign func(signed string) string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	for i, change := range []func(string) string{header, payload} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			parts[i] = base64.RawURLEncoding.EncodeToString([]byte(change(string(text))))
		}
	}
	if sign != nil {
		parts[2] = sign(parts[0] + "." + parts[1])
	}
	return strings.Join(parts, ".")
}

func replaced(old, by string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, by, 1) }
}

// signedBy signs claims as somebody would who holds the key: what the secret is derived to is part of the contract
// between gateways that share a key.
func signedBy(t *testing.T, secret string, method jwt.SigningMethod, change func(jwt.MapClaims, map[string]any)) string {
	t.Helper()
	now := time.Now().Unix()
	claims := jwt.MapClaims{"iss": "vela", "aud": "vela.session", "jti": "x", "iat": now, "exp": now + 600, "sessions": 1, "audioMinutes": 1}
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "main"
	change(claims, token.Header)
	var key any = auth.SigningKey("main", secret)
	if method == jwt.SigningMethodNone {
		key = jwt.UnsafeAllowNoneSignatureType
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBadTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t, "main:"+mainSecret+",second:"+otherSecret)
		good := issue(t, a, auth.Rights{})
		foreign := issue(t, authority(t, "main:"+otherSecret), auth.Rights{})
		strange, _, _ := authority(t, "stranger:"+mainSecret).Issue("stranger", auth.Rights{})
		now := time.Now().Unix()
		none := func(jwt.MapClaims, map[string]any) {}
		claim := func(name string, value any) string {
			return signedBy(t, mainSecret, jwt.SigningMethodHS256, func(c jwt.MapClaims, _ map[string]any) {
				if value == nil {
					delete(c, name)
					return
				}
				c[name] = value
			})
		}
		noSignature := func(string) string { return "" }
		for _, c := range []struct {
			name, token string
			why         error
		}{
			{"good", good, nil},
			{"signed elsewhere with the same key", signedBy(t, mainSecret, jwt.SigningMethodHS256, none), nil},
			{"nothing", "", auth.ErrMalformed},
			{"dots", "..", auth.ErrMalformed},
			{"words", "let.me.in", auth.ErrMalformed},
			{"truncated", good[:strings.LastIndexByte(good, 0x2e)], auth.ErrMalformed},
			{"with another end", good[:len(good)-4] + "AAA", auth.ErrForged},
			{"half", good[:len(good)/2], auth.ErrMalformed},
			{"without its signature", forge(t, good, nil, nil, noSignature), auth.ErrForged},
			{"with a fourth part", good + ".x", auth.ErrMalformed},
			{"padded", good + "=", auth.ErrMalformed},
			{"1 MB", strings.Repeat("a", 1<<20), auth.ErrMalformed},
			{"1 MB of dots", strings.Repeat(".", 1<<20), auth.ErrMalformed},
			{"good and 1 MB", good + strings.Repeat("a", 1<<20), auth.ErrMalformed},
			{"rights changed", forge(t, good, nil, replaced(`"sessions":1`, `"sessions":9`), nil), auth.ErrForged},
			{"of another key with our key's name", foreign, auth.ErrForged},
			{"naming our other key", forge(t, good, replaced(`"main"`, `"second"`), nil, nil), auth.ErrForged},
			{"of a key with a name that we do not know", strange, auth.ErrForeign},
			{"naming no key", forge(t, good, replaced(`"kid":"main",`, ""), nil, nil), auth.ErrForeign},
			{"naming a key by a number", forge(t, good, replaced(`"main"`, "1"), nil, nil), auth.ErrForeign},
			{"alg none, unsigned", signedBy(t, mainSecret, jwt.SigningMethodNone, none), auth.ErrForged},
			{"alg none, with our signature", forge(t, good, replaced("HS256", "none"), nil, nil), auth.ErrForged},
			{"alg None", forge(t, good, replaced("HS256", "None"), nil, noSignature), auth.ErrForged},
			{"alg swapped to HS512 with our key", signedBy(t, mainSecret, jwt.SigningMethodHS512, none), auth.ErrForged},
			{"alg swapped to RS256", forge(t, good, replaced("HS256", "RS256"), nil, nil), auth.ErrForged},
			{"alg missing", forge(t, good, replaced(`"alg":"HS256",`, ""), nil, nil), auth.ErrForged},
			{"signed with the secret itself", underived(t), auth.ErrForged},
			{"expired", claim("exp", now-6), auth.ErrExpired},
			{"expired within the leeway", claim("exp", now-4), nil},
			{"without an end", claim("exp", nil), auth.ErrMalformed},
			{"with an end in words", claim("exp", "tomorrow"), auth.ErrMalformed},
			{"not valid yet", claim("nbf", now+60), auth.ErrEarly},
			{"made in the future", claim("iat", now+60), auth.ErrEarly},
			{"for another audience", claim("aud", "vela.elsewhere"), auth.ErrForeign},
			{"for no audience", claim("aud", nil), auth.ErrMalformed},
			{"of another issuer", claim("iss", "alev"), auth.ErrForeign},
			{"of no issuer", claim("iss", nil), auth.ErrMalformed},
			{"without an id", claim("jti", nil), auth.ErrMalformed},
			{"without sessions", claim("sessions", nil), auth.ErrMalformed},
			{"with a session less than none", claim("sessions", -1), auth.ErrMalformed},
			{"without audio", claim("audioMinutes", nil), auth.ErrMalformed},
			{"with sessions in words", claim("sessions", "many"), auth.ErrMalformed},
			{"expired, and for another audience", signedBy(t, mainSecret, jwt.SigningMethodHS256, func(c jwt.MapClaims, _ map[string]any) {
				c["exp"], c["aud"] = now-60, "x"
			}), auth.ErrForeign},
		} {
			pass, err := a.Admit(c.token)
			if !errors.Is(err, c.why) || (pass == nil) != (c.why != nil) {
				t.Errorf("%s: %v, want %v", c.name, err, c.why)
			}
			if err != nil && c.token != "" && len(c.token) < 1000 {
				for _, part := range strings.Split(c.token, ".") {
					if len(part) > 8 && strings.Contains(err.Error(), part) {
						t.Errorf("%s: the error shows the token: %v", c.name, err)
					}
				}
			}
		}
	})
}

func underived(t *testing.T) string {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": "vela", "aud": "vela.session", "jti": "x", "exp": time.Now().Unix() + 60, "sessions": 1, "audioMinutes": 1})
	token.Header["kid"] = "main"
	text, err := token.SignedString([]byte(mainSecret))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestATokenLivesAsLongAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t, "main:"+mainSecret)
		for _, ttl := range []time.Duration{0, time.Second, auth.MaxTTL} {
			token, expires, err := a.Issue("main", auth.Rights{TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			if ttl == 0 {
				ttl = auth.DefaultTTL
			}
			if got := time.Until(expires); got != ttl {
				t.Errorf("lives %s, want %s", got, ttl)
			}
			time.Sleep(ttl)
			if _, err := a.Admit(token); err != nil {
				t.Errorf("within the leeway after %s: %v", ttl, err)
			}
			time.Sleep(6 * time.Second)
			if _, err := a.Admit(token); !errors.Is(err, auth.ErrExpired) {
				t.Errorf("after %s: %v", ttl, err)
			}
		}
	})
}

func TestRightsHaveBounds(t *testing.T) {
	a := authority(t, "main:"+mainSecret)
	for _, r := range []auth.Rights{
		{TTL: -time.Second}, {TTL: time.Millisecond}, {TTL: auth.MaxTTL + time.Second},
		{Sessions: -1}, {Sessions: auth.MaxSessions + 1}, {Minutes: -1}, {Minutes: auth.MaxMinutes + 1},
	} {
		if _, _, err := a.Issue("main", r); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	if _, _, err := a.Issue("nobody", auth.Rights{}); err == nil {
		t.Error("a key that is not there made a token")
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		list, says string
	}{
		{"main:" + mainSecret, ""},
		{" a:" + mainSecret + " , b:" + otherSecret, ""},
		{"a:" + strings.Repeat("+/=~_-Az", 5), ""},
		{"", "key 1 is not name:secret"},
		{mainSecret, "key 1 is not name:secret"},
		{"main:" + mainSecret + ",", "key 2 is not name:secret"},
		{":" + mainSecret, "bad name"},
		{"a b:" + mainSecret, "bad name"},
		{strings.Repeat("n", 33) + ":" + mainSecret, "bad name"},
		{"main:" + mainSecret[:31], "fewer than 32"},
		{"main:", "fewer than 32"},
		{"main:" + mainSecret + ".", "characters other than"},
		{"main:" + mainSecret + "ü", "characters other than"},
		{"main:" + mainSecret + ":", "characters other than"},
		{"main:" + mainSecret + ",main:" + otherSecret, "key 2 has the name of another"},
	} {
		keys, err := auth.ParseKeys(c.list)
		if c.says == "" {
			if err != nil {
				t.Errorf("%q: %v", c.list, err)
			}
			if shown := fmt.Sprintf("%v %+v %#v %s", keys, keys, keys, keys); strings.Contains(shown, mainSecret) || len(shown) > 100 {
				t.Errorf("printing keys shows %s", shown)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), mainSecret[:31]) {
			t.Errorf("%q: %v, want %q and no secret", c.list, err, c.says)
		}
	}
	if _, err := auth.New(nil); err == nil {
		t.Error("there is an authority without a key")
	}
}

func TestAKeyIsKnownByItsSecret(t *testing.T) {
	a := authority(t, "main:"+mainSecret+",second:"+otherSecret)
	for secret, want := range map[string]string{
		mainSecret: "main", otherSecret: "second",
		"": "", "main": "", mainSecret[:31]: "", mainSecret + "x": "", "main:" + mainSecret: "", strings.ToUpper(mainSecret): "",
	} {
		if name, ok := a.Key(secret); name != want || ok != (want != "") {
			t.Errorf("%q is %q, %v; want %q", secret, name, ok, want)
		}
	}
}

func TestWhatATokenAllows(t *testing.T) {
	a := authority(t, "main:"+mainSecret)
	pass, err := a.Admit(issue(t, a, auth.Rights{Turns: []string{"agent"}}))
	if err != nil || !slices.Equal(pass.Turns(), []string{"agent"}) {
		t.Errorf("%v, %v", pass, err)
	}
}
