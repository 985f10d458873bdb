package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// The protocol versions that are offered, and the rights that are asked for.
const (
	minProtocol = 3
	maxProtocol = 4
	scopeRead   = "operator.read"
	scopeWrite  = "operator.write"
)

// handshakeWithin bounds a whole try to connect.
const handshakeWithin = 15 * time.Second

// maxGreeting bounds how many frames may come before the one that the handshake waits for.
const maxGreeting = 32

// connectParams are those of the connect request. OpenClaw refuses a field that it does not know, and an id and a mode
// that are not on its list: gateway-client in backend mode keeps its rights on loopback without a device of its own.
type connectParams struct {
	MinProtocol int               `json:"minProtocol"`
	MaxProtocol int               `json:"maxProtocol"`
	Client      connectClient     `json:"client"`
	Role        string            `json:"role"`
	Scopes      []string          `json:"scopes"`
	Caps        []string          `json:"caps"` // tool-events: say what the tools of our own runs do
	Auth        map[string]string `json:"auth"`
}

type connectClient struct {
	ID       string `json:"id"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
	Mode     string `json:"mode"`
}

// hello is what OpenClaw answers a connect request that it takes.
type hello struct {
	Protocol int `json:"protocol"`
	Server   struct {
		Version string `json:"version"`
	} `json:"server"`
	Auth struct {
		Scopes []string `json:"scopes"`
	} `json:"auth"`
	Policy struct {
		TickIntervalMs int64 `json:"tickIntervalMs"`
	} `json:"policy"`
}

// defaultTick is for an OpenClaw that does not say how often it says something.
const defaultTick = 30 * time.Second

// tick is how often OpenClaw says at least something.
func (h hello) tick() time.Duration {
	if ms := h.Policy.TickIntervalMs; ms >= 1000 && ms <= 600_000 {
		return time.Duration(ms) * time.Millisecond
	}
	return defaultTick
}

// access is what a connection is for.
type access struct {
	scopes []string // rights that are asked for
	caps   []string // what OpenClaw is to send besides
	denied *failure // that the last of the rights was not given
}

var (
	toAsk    = access{[]string{scopeRead, scopeWrite}, []string{"tool-events"}, errNoRights}
	toListen = access{[]string{scopeRead}, []string{}, errNoReading}
)

// handshake is challenge, connect, hello. The challenge's nonce is for clients that sign with a device of their own.
func handshake(ctx context.Context, s socket, token string, to access) (hello, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeWithin, errors.New("openclaw: the handshake took too long"))
	defer cancel()
	if _, err := await(ctx, s, func(f frame) bool { return f.Event == "connect.challenge" || f.Type == "connect.challenge" }); err != nil {
		return hello{}, silent(err)
	}
	const id = "connect"
	message, err := json.Marshal(request{"req", id, "connect", connectParams{
		MinProtocol: minProtocol,
		MaxProtocol: maxProtocol,
		Client:      connectClient{"gateway-client", "vela", runtime.GOOS, "backend"},
		Role:        "operator",
		Scopes:      to.scopes,
		Caps:        to.caps,
		Auth:        map[string]string{"token": token},
	}})
	if err != nil {
		return hello{}, fmt.Errorf("openclaw: connect: %w", err)
	}
	if err := s.Write(ctx, message); err != nil {
		return hello{}, silent(err)
	}
	f, err := await(ctx, s, func(f frame) bool { return f.Type == "res" && f.ID == id })
	if err != nil {
		return hello{}, silent(err)
	}
	if !f.OK {
		return hello{}, refused(f.Error)
	}
	var h hello
	if err := lenient(f.Payload, &h); err != nil {
		return hello{}, silent(fmt.Errorf("openclaw: read hello: %w", err))
	}
	if !slices.Contains(h.Auth.Scopes, to.scopes[len(to.scopes)-1]) {
		return hello{}, to.denied
	}
	return h, nil
}

// await reads until a frame is the wanted one.
func await(ctx context.Context, s socket, wanted func(frame) bool) (frame, error) {
	for range maxGreeting {
		message, err := s.Read(ctx)
		if err != nil {
			return frame{}, err
		}
		f, err := parseFrame(message)
		if err != nil {
			return frame{}, err
		}
		if wanted(f) {
			return f, nil
		}
	}
	return frame{}, errors.New("openclaw: too many frames before the handshake was over")
}

// refused says in words what OpenClaw's reason means for whoever runs Vela.
func refused(r *reason) *failure {
	switch {
	case r.is("PROTOCOL_MISMATCH") || r != nil && r.Message == "protocol mismatch": // 2026.4 has no code for it
		f := *errProtocol
		f.cause = r
		if n := r.Details.ExpectedProtocol; n > 0 {
			f.words = fmt.Sprintf("OpenClaw speaks version %d of its protocol, Vela versions %d to %d. Update the older of the two.", n, minProtocol, maxProtocol)
		}
		return &f
	case r.is("AUTH_TOKEN_MISMATCH", "AUTH_PASSWORD_MISMATCH", "AUTH_UNAUTHORIZED"):
		return errToken.because(r)
	case r.is("AUTH_RATE_LIMITED"):
		return errTooOften.because(r)
	case r.is("PAIRING_REQUIRED", "NOT_PAIRED", "DEVICE_IDENTITY_REQUIRED"):
		return errPairing.because(r)
	case r.is("UNAVAILABLE"):
		return errStarting.because(r)
	}
	return errRefused.because(r)
}

// silent is an OpenClaw that cannot be reached, for a while.
func silent(cause error) *failure { return errSilent.because(cause) }
