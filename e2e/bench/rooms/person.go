//go:build cgo && opus

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

const (
	joinTime   = 20 * time.Second
	gapBetween = 300 * time.Millisecond // between two answers, at least
)

// The topics of objects.
const (
	topicEvents = "ganglia-events" // between the gateway and people
	topicBare   = "bench"          // from one person to another
)

// person is somebody in a room, with a microphone that is open.
type person struct {
	room    *lksdk.Room
	mic     *lksdk.LocalTrack
	shown   chan shown     // objects of ganglia-events
	onset   chan time.Time // the first packet of an answer's sound
	packets atomic.Int64   // of the agent's sound
	there   chan struct{}  // of size 1: the agent can be heard
}

// shown is an object of ganglia-events, and when it came.
type shown struct {
	Type   string
	Action string
	Detail string
	at     time.Time
}

// enter joins a room with a token of the gateway's, and waits for its agent. onset is told when an answer's sound begins;
// it may be nil.
func enter(ctx context.Context, gateway, room, name string, onset chan time.Time) (*person, error) {
	body, err := json.Marshal(map[string]string{"room_name": room, "participant_identity": name})
	if err != nil {
		return nil, err
	}
	resp, err := http.Post("http://"+gateway+"/api/livekit/token", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var ticket struct {
		URL   string `json:"server_url"`
		Token string `json:"participant_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&ticket); err != nil || resp.StatusCode != http.StatusCreated {
		return nil, fmt.Errorf("a token: %s, %w", resp.Status, err)
	}
	p := &person{shown: make(chan shown, 4*floodPieces), onset: onset, there: make(chan struct{}, 1)}
	p.room = lksdk.NewRoom(&lksdk.RoomCallback{ParticipantCallback: lksdk.ParticipantCallback{
		OnDataPacket: p.data, OnTrackSubscribed: p.hear,
	}})
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	if err := p.room.JoinWithContextAndToken(ctx, ticket.URL, ticket.Token, lksdk.WithDisableRegionDiscovery()); err != nil {
		return nil, err
	}
	if p.mic, err = lksdk.NewLocalTrack(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}); err != nil {
		return nil, err
	}
	_, err = p.room.LocalParticipant.PublishTrack(p.mic, &lksdk.TrackPublicationOptions{
		Name: "microphone", Source: livekit.TrackSource_MICROPHONE, DisableDTX: true,
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-p.there:
		return p, nil
	case <-ctx.Done():
		p.room.Disconnect()
		return nil, errors.New("no agent came")
	}
}

func (p *person) data(d lksdk.DataPacket, _ lksdk.DataReceiveParams) {
	at := time.Now()
	packet, ok := d.(*lksdk.UserDataPacket)
	if !ok || packet.Topic != topicEvents && packet.Topic != topicBare {
		return
	}
	s := shown{at: at}
	if json.Unmarshal(packet.Payload, &s) == nil {
		select {
		case p.shown <- s:
		default: // nobody asks
		}
	}
}

// hear takes the agent's sound, which comes while it speaks.
func (p *person) hear(track *webrtc.TrackRemote, _ *lksdk.RemoteTrackPublication, of *lksdk.RemoteParticipant) {
	if of.Kind() != lksdk.ParticipantAgent {
		return
	}
	select {
	case p.there <- struct{}{}:
	default: // it has come back
	}
	go func() { // until the room is left
		var last time.Time
		for {
			if _, _, err := track.ReadRTP(); err != nil {
				return
			}
			now := time.Now()
			if now.Sub(last) > gapBetween {
				tell(p.onset)
			}
			last = now
			p.packets.Add(1)
		}
	}()
}

// send says an object.
func (p *person) send(topic, object string) error {
	return p.room.LocalParticipant.PublishDataPacket(&lksdk.UserDataPacket{Payload: []byte(object), Topic: topic}, lksdk.WithDataPublishReliable(true))
}

// utter sends a piece of sound, as Opus.
func (p *person) utter(packet []byte) error {
	return p.mic.WriteSample(media.Sample{Data: packet, Duration: piece}, nil)
}

// pace calls send for each piece of sound when it is due, until ctx is done or it fails: what is said, then a pause, again
// and again. after is called behind the last piece of what was said.
func pace(ctx context.Context, said [][]byte, silence []byte, pause time.Duration, send func([]byte) error, after func()) error {
	tick := time.NewTicker(piece)
	defer tick.Stop()
	whole := len(said) + int(pause/piece)
	for n := 0; ; n = (n + 1) % whole {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		next := silence
		if n < len(said) {
			next = said[n]
		}
		if err := send(next); err != nil {
			return err
		}
		if n == len(said)-1 {
			after()
		}
	}
}
