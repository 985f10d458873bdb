package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"vela/gateway/room"
	"vela/gateway/server"
	"vela/gateway/source"
	"vela/protocol"
	"vela/session"
)

// liveKitSpec is the part of a [File] about LiveKit. What it leaves out comes from the variables that LiveKit's own tools
// read: LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET. Without an address there are no rooms.
type liveKitSpec struct {
	line int

	URL         string   `yaml:"url"`         // of the server, ws:// or wss://
	Public      string   `yaml:"public"`      // the address that participants are told, where it is another one
	KeyEnv      string   `yaml:"key_env"`     // the environment variable that holds the API key
	SecretEnv   string   `yaml:"secret_env"`  // and the one that holds its secret
	Agent       string   `yaml:"agent"`       // the name by which the agent is dispatched; empty: into every room
	Hold        duration `yaml:"hold"`        // the agent leaves after such a silence; 0: never
	Content     *bool    `yaml:"content"`     // content events; true unless said otherwise
	HandsFree   bool     `yaml:"hands_free"`  // the gateway hears where speech begins and ends; else muting does it
	Transcripts bool     `yaml:"transcripts"` // agent_transcript and user_transcript
	Follow      []string `yaml:"follow"`      // sources whose tools rooms show, unless somebody in them chooses otherwise
}

// UnmarshalYAML reads it, and where it stands.
func (l *liveKitSpec) UnmarshalYAML(node ast.Node) error {
	type keys liveKitSpec // without this method
	err := yaml.NodeToValue(node, (*keys)(l), yaml.Strict())
	l.line = lineOf(node)
	return err
}

func (l liveKitSpec) check() error {
	for _, address := range []string{l.URL, l.Public} {
		if err := checkLiveKitURL(address); err != nil {
			return err
		}
	}
	if !session.CanFollow(l.Follow) {
		return errors.New("follow takes " + session.FollowBounds)
	}
	return errors.Join(checkEnv(l.KeyEnv), checkEnv(l.SecretEnv))
}

func checkLiveKitURL(address string) error {
	u, err := url.Parse(address)
	if address != "" && (err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" || u.User != nil) {
		return errors.New("the address of LiveKit is written like ws://127.0.0.1:7880 or wss://livekit.example.org")
	}
	return nil
}

// LiveKit says where a gateway's rooms are. The zero value has none.
type LiveKit struct {
	URL, Key, Secret string // secret: it is not logged
	Public           string
	Agent            string
}

// LiveKit is what the file and the environment say about LiveKit. Its error says what is missing.
func (f File) LiveKit() (LiveKit, error) {
	spec := f.livekit
	at := LiveKit{
		URL: cmp.Or(spec.URL, os.Getenv("LIVEKIT_URL")), Public: spec.Public, Agent: spec.Agent,
		Key: os.Getenv(cmp.Or(spec.KeyEnv, "LIVEKIT_API_KEY")), Secret: os.Getenv(cmp.Or(spec.SecretEnv, "LIVEKIT_API_SECRET")),
	}
	if at.URL == "" {
		return LiveKit{}, nil
	}
	if err := checkLiveKitURL(at.URL); err != nil {
		return LiveKit{}, fmt.Errorf("LIVEKIT_URL: %w", err)
	}
	if at.Key == "" || at.Secret == "" {
		return LiveKit{}, fmt.Errorf("LiveKit's address is given, but not its key: set the variables %s and %s",
			cmp.Or(spec.KeyEnv, "LIVEKIT_API_KEY"), cmp.Or(spec.SecretEnv, "LIVEKIT_API_SECRET"))
	}
	return at, nil
}

// makeRooms makes the rooms, nil where there is no LiveKit.
func (g *Gateway) makeRooms(registry prometheus.Registerer) (*room.Rooms, error) {
	metrics := room.NewMetrics(registry)
	at, err := g.cfg.Agents.LiveKit()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if at.URL == "" {
		return nil, nil
	}
	if g.codec == nil {
		g.log.Warn("rooms have no sound: this build is without Opus. Install libopus-dev, and build with make")
	}
	spec := g.cfg.Agents.livekit
	return room.New(room.Config{
		URL: at.URL, Key: at.Key, Secret: at.Secret, Public: at.Public, Agent: at.Agent, Behind: g.signalling() != "",
		Hold: time.Duration(spec.Hold), NoContent: spec.Content != nil && !*spec.Content, Transcripts: spec.Transcripts,
		NewSession: g.roomSession,
		Voice:      len(g.voices.list) > 0,
		Codec:      g.codec,
		HandsFree:  spec.HandsFree,
		Guarded:    g.authority != nil,
		Follow:     spec.Follow,
		Sources:    g.followable,
		Log:        g.cfg.Log.With("component", "room"),
		Metrics:    metrics,
		Tracer:     func() trace.Tracer { return g.tracer },
	}), nil
}

// followable is what rooms are told of the sources: of those that may have tools to show, which devices have none.
func (g *Gateway) followable(ctx context.Context) (there []room.Source) {
	all, _ := g.sources.Sources.List(ctx) // a gateway that stops has none
	for _, s := range all {
		if s.Protocol == source.MIDI {
			continue
		}
		there = append(there, room.Source{ID: s.ID, Name: s.Name, Here: s.State == source.Connected})
	}
	return there
}

// roomSession makes a room's own session. Where no detector of speech is there, people talk by muting and unmuting.
func (g *Gateway) roomSession(ask protocol.SessionStart) (*session.Session, error) {
	s, err := g.server.Open(ask)
	if err != nil && ask.TurnDetection != "" {
		g.log.Warn("a room is not hands-free", "error", err)
		ask.TurnDetection = ""
		s, err = g.server.Open(ask)
	}
	return s, err
}

// roomsServed is what the server offers of the rooms; nil without LiveKit.
func (g *Gateway) roomsServed() server.Rooms {
	if g.rooms == nil {
		return nil // and no interface that holds a nil
	}
	return g.rooms
}

// HasRooms says whether there is a LiveKit.
func (g *Gateway) HasRooms() bool { return g.rooms != nil }

// signalling is the address of a LiveKit that participants reach through the gateway, empty where they reach it themselves.
// Over TLS they do not reach one without: browsers let no page of ours connect to it.
func (g *Gateway) signalling() string {
	at, err := g.cfg.Agents.LiveKit()
	if err != nil {
		return ""
	}
	plain, ok := strings.CutPrefix(at.URL, "ws://")
	if !ok || at.Public != "" || !g.cfg.TLS.on() {
		return ""
	}
	return "http://" + plain
}

// mirror is how a session asks for a room; nil without LiveKit.
func (g *Gateway) mirror() func(*session.Session, string) {
	if g.rooms == nil {
		return nil
	}
	return g.rooms.Mirror
}
