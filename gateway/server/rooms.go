package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"vela/gateway/auth"
	"vela/protocol"
	"vela/session"
)

// Rooms is what the server offers of LiveKit's rooms.
type Rooms interface {
	// Token lets a participant into one room, and says where that is; no address stands for our own. What is empty is made up. What they say there is taken
	// from the pass; nil counts nothing. It returns auth.ErrSessions when the pass has no place for them, and auth.ErrExpired.
	Token(room, identity, name, metadata string, attributes map[string]string, pass *auth.Pass) (url, token string, err error)
	// Join brings an agent into a room, unless one is there.
	Join(room string) error
	// Webhook takes what LiveKit tells. It reads and checks the request itself: an error means that LiveKit did not send it.
	Webhook(*http.Request) error
	// Address is where participants find LiveKit: what a page has to be allowed to connect to. Empty: at our own address.
	Address() string
}

const (
	webhookPath     = "/api/livekit/webhook"
	maxRoomRequest  = 16 << 10 // bytes
	maxRoomName     = 128      // bytes, of rooms and identities
	maxAttributes   = 32
	noRooms         = "This gateway has no LiveKit. Set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET, or livekit in vela.yaml, and start it again."
	notJSON         = "Send the request as application/json."
	roomRequestForm = `The body must be one JSON object; it may have room_name, participant_identity, participant_name, participant_metadata and participant_attributes.`
)

func (s *Server) rooms() {
	s.echo.POST("/api/livekit/token", s.serveRoomToken, s.roomsOnly)
	s.echo.POST("/api/livekit/rooms/:room/join", s.serveRoomJoin, s.roomsOnly)
	s.echo.POST(webhookPath, s.serveWebhook, s.roomsOnly)
}

// roomsOnly is for routes that need LiveKit.
func (s *Server) roomsOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.cfg.Rooms == nil {
			return echo.NewHTTPError(http.StatusNotFound, noRooms)
		}
		return next(c)
	}
}

// roomTokenRequest is the body of LiveKit's standard token endpoint; whatever is left out is made up
// (docs.livekit.io/frontends/build/authentication/endpoint). A room_config is not taken: which agent comes is not for a
// participant to say.
type roomTokenRequest struct {
	Room       string            `json:"room_name"`
	Identity   string            `json:"participant_identity"`
	Name       string            `json:"participant_name"`
	Metadata   string            `json:"participant_metadata"`
	Attributes map[string]string `json:"participant_attributes"`
	Config     json.RawMessage   `json:"room_config"`
}

type roomTokenAnswer struct {
	URL   string `json:"server_url"`
	Token string `json:"participant_token"`
}

// serveRoomToken lets a caller who may have agent-backed turns into one room.
func (s *Server) serveRoomToken(c echo.Context) error {
	if err := s.mayEnterRooms(c); err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	r, err := readRoomRequest(c)
	if err != nil {
		return err
	}
	url, token, err := s.cfg.Rooms.Token(r.Room, r.Identity, r.Name, r.Metadata, r.Attributes, callerOf(c).pays())
	switch {
	case errors.Is(err, auth.ErrSessions):
		return echo.NewHTTPError(http.StatusTooManyRequests, tooManyYou)
	case errors.Is(err, auth.ErrExpired):
		return s.unauthorized(c, tokenReasons[auth.ErrExpired], notYou)
	case err != nil:
		return err
	}
	if url == "" {
		url = "ws" + strings.TrimPrefix(c.Scheme(), "http") + "://" + c.Request().Host // a host that is ours: see ownHostOnly
	}
	return c.JSON(http.StatusCreated, roomTokenAnswer{url, token})
}

// serveRoomJoin brings an agent into a room.
func (s *Server) serveRoomJoin(c echo.Context) error {
	if err := s.mayEnterRooms(c); err != nil {
		return err
	}
	room := c.Param("room")
	if room == "" || !fitsRoom(room) {
		return echo.NewHTTPError(http.StatusBadRequest, "A room's name has 1 to 128 bytes, and no control characters.")
	}
	if err := s.cfg.Rooms.Join(room); err != nil {
		s.log.Warn("no agent for a room", "room", room, "error", err)
		c.Response().Header().Set("Retry-After", "10")
		return echo.NewHTTPError(http.StatusServiceUnavailable, "No agent can join now. Try again in a moment.")
	}
	return c.NoContent(http.StatusAccepted)
}

func (s *Server) serveWebhook(c echo.Context) error {
	if err := s.cfg.Rooms.Webhook(c.Request()); err != nil {
		s.log.Warn("webhook refused", "error", err)
		return echo.NewHTTPError(http.StatusUnauthorized, "This is not signed with the key of this gateway's LiveKit.")
	}
	return c.NoContent(http.StatusOK)
}

// mayEnterRooms refuses foreign pages, and callers whose token allows no agent-backed turns.
func (s *Server) mayEnterRooms(c echo.Context) error {
	if err := s.origins.check(c.Request()); err != nil {
		return err
	}
	who := callerOf(c)
	if who != nil && who.refused != "" {
		return echo.NewHTTPError(http.StatusForbidden, who.refused)
	}
	_, err := who.turns(session.Agent)
	return err
}

// readRoomRequest reads one JSON object; nothing at all asks for the defaults.
func readRoomRequest(c echo.Context) (r roomTokenRequest, err error) {
	req := c.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), req.Body, maxRoomRequest))
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return r, echo.NewHTTPError(http.StatusRequestEntityTooLarge, "The request is too big.")
	case err != nil:
		return r, err
	case len(body) == 0:
		return r, nil
	}
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return r, echo.NewHTTPError(http.StatusUnsupportedMediaType, notJSON)
	}
	var object *roomTokenRequest
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return r, echo.NewHTTPError(http.StatusBadRequest, roomRequestForm)
	}
	r = *object
	switch {
	case len(r.Config) > 0 && string(r.Config) != "null":
		return r, echo.NewHTTPError(http.StatusBadRequest, "This gateway takes no room_config: its own agent comes into every room.")
	case !fitsRoom(r.Room), !fitsRoom(r.Identity), !fitsRoom(r.Name):
		return r, echo.NewHTTPError(http.StatusBadRequest, "room_name, participant_identity and participant_name have at most 128 bytes, and no control characters.")
	case strings.HasPrefix(r.Identity, "agent-"):
		return r, echo.NewHTTPError(http.StatusBadRequest, "Identities that begin with agent- are the gateway's own.")
	case len(r.Attributes) > maxAttributes:
		return r, echo.NewHTTPError(http.StatusBadRequest, "There are too many participant_attributes: 32 are taken.")
	}
	return r, nil
}

func fitsRoom(name string) bool {
	return len(name) <= maxRoomName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Open makes a session with these settings, and runs it for a peer that is no socket. It ends like any other.
func (s *Server) Open(ask protocol.SessionStart) (*session.Session, error) {
	if !s.sessions.enter() {
		return nil, errDraining
	}
	defer s.sessions.exit()
	return s.start(ask, session.Agent, nil)
}
