package room

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"

	"vela/session/speech"
)

// Heard is something that a [Phone] was told.
type Heard struct {
	Who   string // identity of who said it
	Text  string // of a transcription, all of it
	Final bool
	Event []byte // of an object of ganglia-events in its place; a packet as it came
	State string // of the agent's new state in its place
}

// Phone is a participant such as a phone is: it says something in a room, and is told what comes of it.
type Phone struct {
	URL, Token string
	Codec      speech.Codec
	On         func(Heard) // called from one goroutine at a time
}

// agentTime is how long an agent may take to come.
const agentTime = 20 * time.Second

// Say joins, waits for an agent, says the samples (16 kHz, mono) at the speed of speech with the track unmuted meanwhile,
// and leaves when the agent has answered and listens again, or ctx is done.
func (p Phone) Say(ctx context.Context, samples []int16) error {
	quiet()
	enc, err := p.Codec.Encoder(speech.Rate)
	if err != nil {
		return fmt.Errorf("room: %w", err)
	}
	ear := &ear{on: p.On, states: make(chan string, 64), read: make(chan struct{}, 1)}
	room := lksdk.NewRoom(ear.callbacks())
	if err := room.RegisterTextStreamHandler(topicTranscription, ear.transcription); err != nil {
		return fmt.Errorf("room: %w", err)
	}
	if err := room.JoinWithContextAndToken(ctx, p.URL, p.Token, lksdk.WithConnectTimeout(connectTime), lksdk.WithDisableRegionDiscovery()); err != nil {
		return joinError(err)
	}
	defer ear.close()
	defer room.Disconnect()
	track, err := lksdk.NewLocalTrack(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: rtpRate, Channels: 2})
	if err != nil {
		return fmt.Errorf("room: track: %w", err)
	}
	microphone, err := room.LocalParticipant.PublishTrack(track, &lksdk.TrackPublicationOptions{
		Name: "microphone", Source: livekit.TrackSource_MICROPHONE, DisableDTX: true,
	})
	if err != nil {
		return fmt.Errorf("room: publish the microphone: %w", err)
	}
	microphone.SetMuted(true)
	ear.know(room)
	if err := ear.until(ctx, agentTime, errNoAgent, func(state string) bool { return state == "listening" }); err != nil {
		return err
	}
	microphone.SetMuted(false)
	if err := speak(ctx, track, enc, samples); err != nil {
		return err
	}
	microphone.SetMuted(true)
	began := false
	if err := ear.until(ctx, 2*time.Minute, errNoAnswer, func(state string) bool {
		began = began || state == "thinking" || state == "speaking"
		return began && state == "listening"
	}); err != nil {
		return err
	}
	return ear.settle(ctx)
}

var (
	errNoAgent  = errors.New("room: no agent came into the room: see vela livekit check")
	errNoAnswer = errors.New("room: nothing was answered: perhaps nothing was recognised")
)

// speak sends samples at the speed of speech.
func speak(ctx context.Context, track *lksdk.LocalTrack, enc speech.Encoder, samples []int16) error {
	size := speech.Count(frameTime, speech.Rate)
	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	samples = append(slices.Clip(samples), make([]int16, 5*size)...) // LiveKit passes on nothing of a track once it is muted
	for len(samples) > 0 {
		frame := make([]int16, size)
		samples = samples[copy(frame, samples):]
		packet, err := enc.Encode(frame)
		if err == nil {
			err = track.WriteSample(media.Sample{Data: packet, Duration: frameTime}, nil)
		}
		if err != nil {
			return fmt.Errorf("room: speak: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// ear is what a phone is told.
type ear struct {
	states chan string // of the agent; one for which there is no place is dropped

	mu   sync.Mutex
	on   func(Heard)   // nil once nobody listens
	open int           // streams that are being read
	read chan struct{} // of size 1: one of them has come to its end
}

// lateStream is how long a text may come after the state that follows it: they go different ways.
const lateStream = 500 * time.Millisecond

// settle waits until every text that has begun has been read.
func (e *ear) settle(ctx context.Context) error {
	late := time.NewTimer(lateStream)
	defer late.Stop()
	for wait := true; wait; {
		select {
		case <-e.read:
		case <-late.C:
			wait = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	end := time.NewTimer(agentTime)
	defer end.Stop()
	for e.reading() {
		select {
		case <-e.read:
		case <-end.C:
			return nil // what came is told
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (e *ear) reading() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open > 0
}

// begun counts a stream, and ended says that it is over.
func (e *ear) begun() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
}

func (e *ear) ended() {
	e.mu.Lock()
	e.open--
	e.mu.Unlock()
	select {
	case e.read <- struct{}{}:
	default:
	}
}

func (e *ear) tell(h Heard) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.on != nil {
		e.on(h)
	}
}

// close lets nothing through any more: the SDK may still be calling.
func (e *ear) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.on = nil
}

func (e *ear) callbacks() *lksdk.RoomCallback {
	return &lksdk.RoomCallback{ParticipantCallback: lksdk.ParticipantCallback{
		OnAttributesChanged: func(changed map[string]string, p lksdk.Participant) {
			if state := changed["lk.agent.state"]; state != "" {
				e.state(state)
			}
		},
		OnDataPacket: func(p lksdk.DataPacket, params lksdk.DataReceiveParams) {
			if u, ok := p.(*lksdk.UserDataPacket); ok && u.Topic == topicEvents {
				e.tell(Heard{Who: params.SenderIdentity, Event: u.Payload})
			}
		},
	}}
}

func (e *ear) state(state string) {
	e.tell(Heard{State: state})
	select {
	case e.states <- state:
	default:
	}
}

// know takes the state of an agent that was there before us.
func (e *ear) know(room *lksdk.Room) {
	for _, p := range room.GetRemoteParticipants() {
		if state := p.Attributes()["lk.agent.state"]; state != "" {
			e.state(state)
		}
	}
}

// until waits for a state of the agent, for at most so long.
func (e *ear) until(ctx context.Context, most time.Duration, late error, is func(state string) bool) error {
	end := time.NewTimer(most)
	defer end.Stop()
	for {
		select {
		case state := <-e.states:
			if is(state) {
				return nil
			}
		case <-end.C:
			return late
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// transcription reads a stream: the SDK calls it in a goroutine of its own.
func (e *ear) transcription(reader *lksdk.TextStreamReader, identity string) {
	e.begun()
	defer e.ended()
	text, err := io.ReadAll(io.LimitReader(reader, 1<<20))
	if err == nil {
		e.tell(Heard{Who: identity, Text: string(text), Final: reader.Info.Attributes[attrFinal] == "true"})
	}
}
