package auth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Bounds of what a token may allow, and what it allows unless asked for something else.
const (
	DefaultTTL     = 10 * time.Minute
	MaxTTL         = 24 * time.Hour
	DefaultMinutes = 60
	MaxMinutes     = 24 * 60
	MaxSessions    = 1000
)

// Rights are what a token allows. The zero value asks for the defaults.
type Rights struct {
	TTL      time.Duration // how long it is good; default [DefaultTTL]
	Sessions int           // at once; default 1
	Minutes  int           // of audio in all; default [DefaultMinutes]
	Turns    []string      // kinds of turns; none: every kind
	Signals  []string      // what it may do with signals: [FollowSignals], [EmitSignals]; none: nothing
}

// What a token may allow with signals.
const (
	FollowSignals = "follow" // see them, those of other people's sessions too
	EmitSignals   = "emit"   // emit what a person does
)

func (r *Rights) setDefaults() {
	if r.TTL == 0 {
		r.TTL = DefaultTTL
	}
	if r.Sessions == 0 {
		r.Sessions = 1
	}
	if r.Minutes == 0 {
		r.Minutes = DefaultMinutes
	}
}

func (r *Rights) check() error {
	switch {
	case r.TTL < time.Second || r.TTL > MaxTTL:
		return fmt.Errorf("auth: a token lives from 1 to %d seconds", int(MaxTTL.Seconds()))
	case r.Sessions < 1 || r.Sessions > MaxSessions:
		return fmt.Errorf("auth: a token has from 1 to %d sessions", MaxSessions)
	case r.Minutes < 1 || r.Minutes > MaxMinutes:
		return fmt.Errorf("auth: a token has from 1 to %d minutes of audio", MaxMinutes)
	}
	return nil
}

// Why a token is refused. A client is told one text for all of them: what is wrong is the operator's to know.
var (
	ErrMalformed = errors.New("auth: the token is malformed")
	ErrForged    = errors.New("auth: the token's signature is wrong")
	ErrForeign   = errors.New("auth: the token is not of a key or a gateway that we know")
	ErrEarly     = errors.New("auth: the token is not valid yet")
	ErrExpired   = errors.New("auth: the token has expired")
)

const (
	issuer   = "vela"
	audience = "vela.session"
	leeway   = 5 * time.Second // clocks of gateways that share a key differ
	maxToken = 4 << 10         // bytes; ours have some 300
)

// claims are a token's contents.
type claims struct {
	jwt.RegisteredClaims
	Sessions int      `json:"sessions"`
	Minutes  int      `json:"audioMinutes"`
	Turns    []string `json:"turns,omitempty"`
	Signals  []string `json:"signals,omitempty"`
}

// Issue makes a token with the key of that name.
func (a *Authority) Issue(key string, r Rights) (token string, expires time.Time, err error) {
	k, ok := a.byName(key)
	if !ok {
		return "", time.Time{}, errors.New("auth: there is no key of that name")
	}
	r.setDefaults()
	if err := r.check(); err != nil {
		return "", time.Time{}, err
	}
	now := time.Now().Truncate(time.Second)
	expires = now.Add(r.TTL)
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			ID:        rand.Text(),
			Issuer:    issuer,
			Audience:  jwt.ClaimStrings{audience},
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(expires),
		},
		Sessions: r.Sessions, Minutes: r.Minutes, Turns: r.Turns, Signals: r.Signals,
	})
	t.Header["kid"] = k.name
	token, err = t.SignedString(k.sign)
	return token, expires, err
}

// Admit checks a token. One that has expired is let in while a session of it still runs, so that a client which lost
// its connection can take that session up again; its [Pass.Enter] starts no other. The error is one of this package's.
func (a *Authority) Admit(token string) (*Pass, error) {
	c, err := a.parse(token)
	if err != nil && (!errors.Is(err, ErrExpired) || !a.runs(c.ID)) {
		return nil, err
	}
	return &Pass{authority: a, claims: c, expired: err != nil}, nil
}

var parser = jwt.NewParser(
	jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
	jwt.WithStrictDecoding(),
	jwt.WithExpirationRequired(),
	jwt.WithIssuedAt(),
	jwt.WithIssuer(issuer),
	jwt.WithAudience(audience),
	jwt.WithLeeway(leeway),
)

// parse returns the claims of a token whose signature is right: also of one that is [ErrExpired] and nothing else.
func (a *Authority) parse(token string) (claims, error) {
	var c claims
	if len(token) > maxToken {
		return claims{}, ErrMalformed
	}
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		k, ok := a.byName(kid)
		if !ok {
			return nil, ErrForeign
		}
		return k.sign, nil
	})
	if err = reason(err); err != nil && !errors.Is(err, ErrExpired) {
		return claims{}, err
	}
	if c.ID == "" || c.Sessions < 1 || c.Minutes < 1 {
		return claims{}, ErrMalformed
	}
	return c, err
}

// reason makes the library's error one of ours: its words may quote the token. The library joins whatever is wrong with
// the claims, so that a token counts as expired only when there is nothing else.
func reason(err error) error {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case err == nil:
		return nil
	case is(ErrForeign):
		return ErrForeign
	case is(jwt.ErrTokenMalformed):
		return ErrMalformed
	case is(jwt.ErrTokenUnverifiable, jwt.ErrTokenSignatureInvalid):
		return ErrForged
	case is(jwt.ErrTokenInvalidAudience, jwt.ErrTokenInvalidIssuer):
		return ErrForeign
	case is(jwt.ErrTokenRequiredClaimMissing):
		return ErrMalformed
	case is(jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued):
		return ErrEarly
	case is(jwt.ErrTokenExpired):
		return ErrExpired
	}
	return ErrMalformed
}
