package room

// This file and worker.go, sweep.go, api.go and phone.go are the ones of the package that know LiveKit's SDK
// (github.com/livekit/server-sdk-go/v2 v2.18.1).

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/livekit/protocol/livekit"
	"github.com/livekit/protocol/logger"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"google.golang.org/protobuf/proto"

	"vela/session/speech"
)

const (
	connectTime = 8 * time.Second
	maxBuffered = 1 << 20 // bytes that may be under way to LiveKit before a packet waits
	maxPacket   = 60_000  // bytes: the SDK drops what is over 65,507 and says nothing
	publishTime = 5 * time.Second
)

// quiet discards what the SDK logs: addresses with tokens among it. What matters is logged here.
var quiet = sync.OnceFunc(func() { lksdk.SetLogger(logger.GetDiscardLogger()) })

// connection is a line to LiveKit.
type connection struct {
	room  *lksdk.Room
	from  *Room
	ctx   context.Context
	track *lksdk.LocalTrack // nil where this build has no sound
	enc   speech.Encoder
	tasks sync.WaitGroup
	stop  context.CancelFunc // ends watch
	down  chan struct{}      // of size 1: the connection is being made again
	reads chan struct{}      // closed when packets come to us

	mu   sync.Mutex
	up   chan struct{} // closed while the connection is there
	sid  string        // ours
	sink *lksdk.LocalParticipant
}

// dial joins a room as an agent.
func dial(ctx context.Context, r *Room, t ticket) (line, error) {
	quiet()
	c := &connection{from: r, ctx: ctx, up: make(chan struct{}), down: make(chan struct{}, 1), reads: make(chan struct{})}
	c.room = lksdk.NewRoom(c.callbacks())
	c.sink = c.room.LocalParticipant
	if err := c.register(); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	c.stop = stop
	c.tasks.Go(func() { c.watch(watching) })
	err := c.room.JoinWithContextAndToken(ctx, t.url, t.token,
		lksdk.WithAutoSubscribe(false), lksdk.WithConnectTimeout(connectTime), lksdk.WithDisableRegionDiscovery())
	if err != nil {
		stop()
		c.tasks.Wait()
		return nil, joinError(err)
	}
	c.setUp(true)
	c.sid = c.sink.SID()
	if err := c.ready(ctx); err != nil {
		c.close()
		return nil, err
	}
	if err := c.publish(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// joinError is why a room could not be joined, without the address: a token stands in it.
func joinError(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "401"), strings.Contains(text, "unauthorized"), strings.Contains(text, "invalid token"), strings.Contains(text, "permission"):
		return errKey
	case strings.Contains(text, "404"), strings.Contains(text, "does not exist"), strings.Contains(text, "not found"):
		return errNoRoom
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	return errUnreachable
}

var (
	errKey         = errors.New("room: LiveKit does not take our key: see that LIVEKIT_API_KEY and LIVEKIT_API_SECRET are those of the server at LIVEKIT_URL, and that both clocks agree")
	errOld         = errors.New("room: LiveKit knows no agents: it is too old, or not LiveKit. Bring it up to date: vela livekit check says to what")
	errNoRoom      = errors.New("room: LiveKit has no such room and makes none by itself, or what answers at LIVEKIT_URL is not LiveKit: vela livekit check says which")
	errUnreachable = errors.New("room: LiveKit is not there: see that a server runs at LIVEKIT_URL")
)

// watch reads the packets of the connection itself, in place of the SDK, which is not safe with all that participants may
// send (see chats). The SDK makes a peer connection for each time that it connects, and its channels some milliseconds later:
// there is no event between the two, so watch looks while the connection is being made.
func (c *connection) watch(ctx context.Context) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	var known *webrtc.PeerConnection
	for {
		if pc := c.sink.GetSubscriberPeerConnection(); pc != nil && pc != known {
			known = pc
			pc.OnDataChannel(c.read)
		}
		look := again.C
		if c.isUp() {
			look = nil
		}
		select {
		case <-look:
		case <-c.down:
		case <-ctx.Done():
			return
		}
	}
}

// read reads a data channel: pion calls it for each, before anything comes on it.
func (c *connection) read(channel *webrtc.DataChannel) {
	said := new(chats)
	channel.OnMessage(func(m webrtc.DataChannelMessage) { c.packet(said, m.Data) })
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.reads:
	default:
		close(c.reads)
	}
}

// ready waits until what others send comes to us: the agent says that it listens behind this.
func (c *connection) ready(ctx context.Context) error {
	late := time.NewTimer(connectTime)
	defer late.Stop()
	select {
	case <-c.reads:
		return nil
	case <-late.C:
		return errLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// packet takes what a participant sent. What is nothing of ours is nobody's business here.
func (c *connection) packet(said *chats, b []byte) {
	var p livekit.DataPacket
	from := ""
	if proto.Unmarshal(b, &p) == nil {
		from = p.GetParticipantIdentity()
	}
	if from == "" {
		return
	}
	switch v := p.Value.(type) {
	case *livekit.DataPacket_User:
		if v.User.GetTopic() == topicEvents {
			c.post(command{from, v.User.GetPayload()})
		}
	case *livekit.DataPacket_RpcRequest:
		r := v.RpcRequest
		c.room.OnRpcRequest(from, r.GetId(), r.GetMethod(), r.GetPayload(), time.Duration(r.GetResponseTimeoutMs())*time.Millisecond, r.GetVersion())
	case *livekit.DataPacket_StreamHeader:
		said.begin(from, v.StreamHeader)
	case *livekit.DataPacket_StreamChunk:
		said.add(from, v.StreamChunk)
	case *livekit.DataPacket_StreamTrailer:
		if text := said.end(from, v.StreamTrailer); text != "" {
			c.post(typed{from, text})
		}
	}
}

func (c *connection) isUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.up:
		return true
	default:
		return false
	}
}

// publish makes the track on which answers are heard.
func (c *connection) publish() (err error) {
	if c.from.cfg.Codec == nil {
		return nil
	}
	if c.enc, err = c.from.cfg.Codec.Encoder(outRate); err != nil {
		return fmt.Errorf("room: %w", err)
	}
	c.track, err = lksdk.NewLocalTrack(webrtc.RTPCodecCapability{
		MimeType: webrtc.MimeTypeOpus, ClockRate: rtpRate, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1",
	})
	if err != nil {
		return fmt.Errorf("room: track: %w", err)
	}
	_, err = c.sink.PublishTrack(c.track, &lksdk.TrackPublicationOptions{
		Name: "agent", Source: livekit.TrackSource_MICROPHONE, DisableDTX: true,
	})
	if err != nil {
		return fmt.Errorf("room: publish the agent's track: %w", err)
	}
	return nil
}

func (c *connection) post(in input) bool { return c.from.post(c.ctx, in) }

// callbacks are what the SDK calls, each from a goroutine of its own choice.
func (c *connection) callbacks() *lksdk.RoomCallback {
	return &lksdk.RoomCallback{
		OnParticipantConnected:    func(p *lksdk.RemoteParticipant) { c.post(came{identity: p.Identity(), agent: isAgent(p)}) },
		OnParticipantDisconnected: func(p *lksdk.RemoteParticipant) { c.post(left{p.Identity()}) },
		OnDisconnectedWithReason:  func(lksdk.DisconnectionReason) { c.from.over(disconnected(c.room.DisconnectReason())) },
		OnReconnecting:            c.reconnecting,
		OnReconnected:             c.reconnected,
		ParticipantCallback: lksdk.ParticipantCallback{
			OnTrackPublished:  func(pub *lksdk.RemoteTrackPublication, _ *lksdk.RemoteParticipant) { c.subscribe(pub) },
			OnTrackSubscribed: c.opened,
			OnTrackUnsubscribed: func(_ *webrtc.TrackRemote, pub *lksdk.RemoteTrackPublication, _ *lksdk.RemoteParticipant) {
				c.post(closed{pub.SID()})
			},
			OnTrackMuted:   func(pub lksdk.TrackPublication, _ lksdk.Participant) { c.post(muted{pub.SID(), true}) },
			OnTrackUnmuted: func(pub lksdk.TrackPublication, _ lksdk.Participant) { c.post(muted{pub.SID(), false}) },
		},
	}
}

func (c *connection) reconnecting() {
	c.from.log.Info("connection lost, and made again")
	c.setUp(false)
	select {
	case c.down <- struct{}{}:
	default:
	}
}

// reconnected follows a connection that was made again. LiveKit gives us another SID when it has forgotten us, after its
// own restart: what was under way is lost then, and who was here has to come again.
func (c *connection) reconnected() {
	sid := c.sink.SID()
	c.mu.Lock()
	anew := sid != c.sid
	c.sid = sid
	c.mu.Unlock()
	c.from.log.Info("connected again", "anew", anew)
	c.setUp(true)
	if anew {
		c.post(again{})
	}
}

func isAgent(p *lksdk.RemoteParticipant) bool { return p.Kind() == lksdk.ParticipantAgent }

// subscribe asks for the sound of a microphone. An error means that the connection is gone.
func (c *connection) subscribe(pub *lksdk.RemoteTrackPublication) {
	if c.from.cfg.Codec != nil && pub.Kind() == lksdk.TrackKindAudio && pub.Source() != livekit.TrackSource_SCREEN_SHARE_AUDIO {
		_ = pub.SetSubscribed(true)
	}
}

// disconnected is what the server, or the SDK, gives as its reason.
func disconnected(why livekit.DisconnectReason) error {
	switch why {
	case livekit.DisconnectReason_ROOM_DELETED, livekit.DisconnectReason_ROOM_CLOSED, livekit.DisconnectReason_PARTICIPANT_REMOVED,
		livekit.DisconnectReason_DUPLICATE_IDENTITY:
		return errRemoved
	}
	return errLost
}

func (c *connection) opened(track *webrtc.TrackRemote, pub *lksdk.RemoteTrackPublication, p *lksdk.RemoteParticipant) {
	if track.Kind() != webrtc.RTPCodecTypeAudio || isAgent(p) {
		return
	}
	c.post(opened{&microphone{
		who: who{identity: p.Identity(), track: pub.SID()}, sid: pub.SID(), packets: remoteTrack{track}, isMuted: pub.IsMuted,
	}})
}

type remoteTrack struct{ *webrtc.TrackRemote }

func (t remoteTrack) read() (*rtp.Packet, error) {
	p, _, err := t.ReadRTP()
	return p, err
}

// register offers what participants may call. It is done before joining, or early ones are lost.
func (c *connection) register() error {
	for _, method := range methods {
		if err := c.room.RegisterRpcCtxMethod(method, c.method(method)); err != nil {
			return fmt.Errorf("room: %w", err)
		}
	}
	return nil
}

// method calls the session.
func (c *connection) method(name string) lksdk.RpcHandlerCtxFunc {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		m, err := readCall(name, payload)
		if err != nil {
			return nil, lksdk.NewRpcError(lksdk.RpcApplicationError, err.Error(), nil)
		}
		meta := lksdk.RPCMetadataFromContext(ctx)
		asked := &call{message: m, done: make(chan error, 1), answer: []byte("{}")}
		if meta != nil {
			asked.identity = meta.CallerIdentity
		}
		if meta == nil || !c.post(asked) {
			return nil, lksdk.NewRpcError(lksdk.RpcRecipientDisconnected, "the agent is leaving", nil)
		}
		select {
		case err = <-asked.done:
			if err == nil && asked.finish != nil {
				asked.answer, err = asked.finish(ctx)
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-c.ctx.Done():
			err = errLost
		}
		var known *callError
		switch {
		case errors.As(err, &known):
			code := string(known.code)
			return nil, lksdk.NewRpcError(lksdk.RpcApplicationError, known.words, &code)
		case err != nil:
			return nil, lksdk.NewRpcError(lksdk.RpcRecipientDisconnected, "the agent has left", nil)
		}
		return asked.answer, nil
	}
}

// present implements [line]. Whom an agent left on purpose has one again.
func (c *connection) present() (people []came) {
	var marked []string
	defer func() {
		if len(marked) > 0 {
			c.tasks.Go(func() { mark(c.ctx, c.from.cfg, c.from.name, marked, "") })
		}
	}()
	for _, p := range c.room.GetRemoteParticipants() {
		if p.Attributes()[attrLeft] != "" {
			marked = append(marked, p.Identity())
		}
		people = append(people, came{identity: p.Identity(), agent: isAgent(p), first: true})
		for _, pub := range p.TrackPublications() {
			if remote, ok := pub.(*lksdk.RemoteTrackPublication); ok {
				c.subscribe(remote)
			}
		}
	}
	return people
}

// listen implements [line].
func (c *connection) listen(ctx context.Context, m *microphone) {
	dec, err := c.from.cfg.Codec.Decoder(speech.Rate)
	if err != nil {
		c.from.log.Error("a microphone is not heard", "error", err)
		return
	}
	c.tasks.Go(func() { m.run(ctx, dec, c.post, c.from.metrics) })
}

// play implements [line].
func (c *connection) play() speaker {
	if c.track == nil {
		return nil
	}
	return c
}

// write implements [speaker].
func (c *connection) write(samples []int16, due time.Time) (int, error) {
	data, err := c.enc.Encode(samples)
	if err != nil {
		return 0, fmt.Errorf("room: %w", err)
	}
	return len(data), c.track.WriteSample(media.Sample{Data: data, Duration: frameTime, Timestamp: due}, nil)
}

func (c *connection) setUp(up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.up:
		if !up {
			c.up = make(chan struct{})
		}
	default:
		if up {
			close(c.up)
		}
	}
}

// wait waits until the connection is there, and not too much is under way on it.
func (c *connection) wait(ctx context.Context) error {
	again := stopped()
	defer again.Stop()
	for {
		c.mu.Lock()
		up := c.up
		c.mu.Unlock()
		select {
		case <-up:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pc := c.sink.GetPublisherPeerConnection()
		if pc == nil || pc.SCTP() == nil || pc.SCTP().BufferedAmount() < maxBuffered {
			return nil
		}
		again.Reset(2 * time.Millisecond) // there is no event for it
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// packet is one of ours, as the SDK wants it.
type packet struct{ *livekit.DataPacket }

func (p packet) ToProto() *livekit.DataPacket { return p.DataPacket }

var errTooBig = errors.New("room: a packet is larger than LiveKit carries")

// carry implements [carrier].
func (c *connection) carry(ctx context.Context, p *livekit.DataPacket) error {
	if proto.Size(p) > maxPacket {
		return errTooBig
	}
	late := time.Now().Add(publishTime)
	for {
		if err := c.wait(ctx); err != nil {
			return err
		}
		err := c.sink.PublishDataPacket(packet{p}, lksdk.WithDataPublishReliable(true))
		if err == nil {
			return nil
		}
		if time.Now().After(late) {
			return errLost
		}
	}
}

// describe implements [carrier].
func (c *connection) describe(attributes map[string]string) { c.sink.SetAttributes(attributes) }

// excuse implements [line].
func (c *connection) excuse(identities []string, why string) {
	mark(c.ctx, c.from.cfg, c.from.name, identities, why)
}

// close implements [line].
func (c *connection) close() {
	c.stop()
	c.room.Disconnect()
	c.tasks.Wait()
}
