package server

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"vela/gateway/auth"
	"vela/protocol"
	"vela/session"
)

// What a client is told. One text serves for every key and every token that is refused, so that it says nothing about
// how close the client came. The second also has to fit a close frame (123 bytes).
const (
	whoAreYou = "This gateway has to know who you are: send a token as Authorization: Bearer TOKEN, or from a browser as the " +
		"subprotocol entry vela.token.TOKEN beside vela.v2. Whoever holds a server key makes one with POST /api/tokens."
	notYou         = "The token or key is not valid, or no longer. Ask whoever runs the gateway for a new one."
	keysOnly       = "This needs a server key, not a token."
	notFollowing   = "This needs a server key, or a token that may follow signals."
	tooManyStreams = "Your token has as many event streams as it may have. End one of them, or try again later."
	notTheseNow    = "Your token does not allow these turns. Ask whoever runs the gateway for one that does."
	tooManyYou     = "Your token has as many sessions as it may have. End one of them, or try again later."
	tooOften       = "Too many wrong keys came from your address. Wait a little."
	tokenAlone     = "Offer vela.v2 or vela.v1 beside the token: a browser needs one that the gateway can choose."
	noAuth         = "This gateway asks nobody who they are. Start it with --auth keys to have tokens."
)

// open are the routes that anybody may ask for: the page, which is the same for all, and what says that we live. Every
// other route needs a credential, also one that is added later.
var open = map[string]bool{
	"": true, "/": true, "/*": true, "/healthz": true, "/readyz": true, "/asyncapi.yaml": true, "/phone": true,
	"/schema/signal.json": true, "/schema/wiring.json": true,
}

// caller is who sent a request. The nil caller is anybody, where the gateway asks nobody who they are.
type caller struct {
	key     string     // the name of the server key that was shown
	pass    *auth.Pass // of the token that was shown instead
	browser bool       // the token came as a subprotocol entry: whoever sent it reads close codes, but no HTTP answers
	refused string     // why a browser's socket is closed as soon as it is open
}

// authenticate lets only those in who show a token or a server key. Whatever is shown is taken out of the request, so
// that nothing behind here can log or keep it.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch path := c.Path(); {
		case path == webhookPath: // LiveKit signs what it tells, in the header that holds a credential elsewhere
			return next(c)
		case slices.Contains(rtcPaths, path): // LiveKit checks its own tokens, which stand there too
			return next(c)
		case path == hookPath: // a hook has a token of its own
			return next(c)
		}
		shown := takeCredential(c.Request().Header)
		if shown.alone {
			return echo.NewHTTPError(http.StatusBadRequest, tokenAlone)
		}
		if s.cfg.Auth == nil || open[c.Path()] {
			return next(c)
		}
		who, err := s.recognise(c, shown)
		if err != nil {
			return err
		}
		c.Set("caller", who)
		return next(c)
	}
}

func callerOf(c echo.Context) *caller {
	who, _ := c.Get("caller").(*caller)
	return who
}

func (s *Server) recognise(c echo.Context, shown credential) (*caller, error) {
	switch {
	case shown.none():
		return nil, s.unauthorized(c, "missing", whoAreYou)
	case shown.bad:
		return s.refuse(c, shown, auth.ErrMalformed)
	case shown.browser || auth.LooksLikeToken(shown.text):
		pass, err := s.cfg.Auth.Admit(shown.text)
		if err != nil {
			return s.refuse(c, shown, err)
		}
		return &caller{pass: pass, browser: shown.browser}, nil
	}
	from := remote(c.Request())
	if wait := s.throttle.Wait(from); wait > 0 {
		c.Response().Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		s.countRefused(c, "throttled")
		return nil, echo.NewHTTPError(http.StatusTooManyRequests, tooOften)
	}
	name, ok := s.cfg.Auth.Key(shown.text)
	if !ok {
		s.throttle.Failed(from)
		return nil, s.unauthorized(c, "key", notYou)
	}
	return &caller{key: name}, nil
}

// refuse turns away a token. A browser could not read an answer to its handshake, so its socket is opened and closed
// with a code.
func (s *Server) refuse(c echo.Context, shown credential, err error) (*caller, error) {
	if !shown.browser || c.Path() != "/ws" {
		return nil, s.unauthorized(c, tokenReasons[err], notYou)
	}
	s.countRefused(c, tokenReasons[err])
	return &caller{browser: true, refused: notYou}, nil
}

var tokenReasons = map[error]string{
	auth.ErrMalformed: "malformed", auth.ErrForged: "forged", auth.ErrForeign: "foreign",
	auth.ErrEarly: "early", auth.ErrExpired: "expired",
}

func (s *Server) unauthorized(c echo.Context, reason, words string) error {
	s.countRefused(c, reason)
	c.Response().Header().Set("WWW-Authenticate", "Bearer")
	return echo.NewHTTPError(http.StatusUnauthorized, words)
}

func (s *Server) countRefused(c echo.Context, reason string) {
	s.metrics.refused.WithLabelValues(reason).Inc()
	s.log.Debug("caller refused", "reason", reason, "route", c.Path(), "address", remote(c.Request()).String())
}

// remote is the address at the other end of the connection. What a request says about itself is not believed.
func remote(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	return a.Addr()
}

// serverKeyOnly is for routes of the operator's.
func (s *Server) serverKeyOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if who := callerOf(c); who != nil && who.key == "" {
			return echo.NewHTTPError(http.StatusForbidden, keysOnly)
		}
		return next(c)
	}
}

// followersOnly is for what is of everybody's sessions: for who has a server key, or a token with that right.
func (s *Server) followersOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		who := callerOf(c)
		if !who.follows() {
			return echo.NewHTTPError(http.StatusForbidden, notFollowing)
		}
		if who.pays() == nil {
			return next(c)
		}
		leave, err := who.pass.Watch()
		if err != nil {
			return echo.NewHTTPError(http.StatusTooManyRequests, tooManyStreams)
		}
		defer leave()
		return next(c)
	}
}

// turns says which kind of turns the caller gets who asked for these, empty if for none.
func (w *caller) turns(asked session.Turns) (session.Turns, error) {
	if w == nil || w.pass == nil {
		return asked, nil
	}
	allowed := w.pass.Turns()
	if len(allowed) == 0 {
		return asked, nil
	}
	for _, t := range allowed {
		if asked == session.Turns(t) || asked == "" && len(allowed) == 1 {
			return session.Turns(t), nil
		}
	}
	if asked == "" {
		return asked, nil // all kinds there are
	}
	if w.browser {
		w.refused = notTheseNow
		return asked, nil
	}
	return "", echo.NewHTTPError(http.StatusForbidden, notTheseNow)
}

// audio is what the caller's sessions take their audio from; nil is without limit.
func (w *caller) audio() session.Allowance {
	if w == nil || w.pass == nil {
		return nil
	}
	return w.pass
}

// pays is the pass that what the caller does elsewhere is taken from; nil is without limit.
func (w *caller) pays() *auth.Pass {
	if w == nil {
		return nil
	}
	return w.pass
}

// dismissed is how to turn away a caller that may not come in at all; nil for one that may.
func (w *caller) dismissed() *dismissal {
	if w == nil || w.refused == "" {
		return nil
	}
	return &dismissal{code: protocol.CloseAuthentication, reason: w.refused}
}

// only is which kinds of turns the caller may have; empty for all.
func (w *caller) only() []session.Turns {
	if w == nil || w.pass == nil {
		return nil
	}
	var kinds []session.Turns
	for _, t := range w.pass.Turns() {
		kinds = append(kinds, session.Turns(t))
	}
	return kinds
}

// follows says whether the caller may see signals, which are of everybody's sessions.
func (w *caller) follows() bool {
	return w == nil || w.pass == nil || w.pass.Signals(auth.FollowSignals)
}

// emits says whether the caller may emit what a person does.
func (w *caller) emits() bool { return w == nil || w.pass == nil || w.pass.Signals(auth.EmitSignals) }

// enter takes one of the places that the caller may have for a session, and gives back how to leave it. Without a place
// it returns how to turn the caller away.
func (w *caller) enter() (leave func(), no *dismissal) {
	switch {
	case w == nil:
		return func() {}, nil
	case w.pass == nil:
		return func() {}, nil
	}
	leave, err := w.pass.Enter()
	switch {
	case errors.Is(err, auth.ErrSessions):
		return nil, noPlace(tooManyYou)
	case err != nil:
		return nil, &dismissal{code: protocol.CloseAuthentication, reason: notYou}
	}
	return leave, nil
}

// dismissal is how a socket is turned away that gets no session.
type dismissal struct {
	told   *protocol.Error // nil: the close frame says it all
	code   protocol.CloseCode
	reason string
}

func (d *dismissal) Error() string { return "server: turned away: " + d.reason }

func noPlace(words string) *dismissal {
	return &dismissal{
		told: &protocol.Error{
			Code:      protocol.CodeSessionLimit,
			Message:   words,
			Retryable: protocol.CodeSessionLimit.Retryable(),
		},
		code: protocol.CloseSessionLimit, reason: "no free session",
	}
}

// ownName says whether a request names us: by the address it came to, or by a name in our certificate. Only a gateway
// with a certificate is known by more than the loopback addresses.
func (s *Server) ownName(r *http.Request) bool {
	if s.cfg.TLS == nil {
		return false
	}
	name := hostname(r.Host)
	if ip, err := netip.ParseAddr(name); err == nil {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		return local != nil && local.AddrPort().Addr().Unmap() == ip.Unmap()
	}
	return s.cfg.OwnName != nil && s.cfg.OwnName(name)
}
