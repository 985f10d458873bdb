package room

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/livekit/protocol/livekit"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/session"
)

// air is a [carrier] that keeps what it carries.
type air struct {
	mu      sync.Mutex
	packets []*livekit.DataPacket
	states  []string
	stuck   chan struct{} // carry waits for it; nil does not
	fails   error
}

func (a *air) carry(ctx context.Context, p *livekit.DataPacket) error {
	if a.stuck != nil {
		select {
		case <-a.stuck:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fails != nil {
		return a.fails
	}
	a.packets = append(a.packets, p)
	return nil
}

func (a *air) describe(attributes map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	words := attributes[attrState]
	if how := attributes[attrDetection]; how != "" {
		words += "/" + how
	}
	if whom := attributes[attrFollow]; whom != "" {
		words += "/" + whom
	}
	a.states = append(a.states, words)
}

// was is the states that were said.
func (a *air) was() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.states)
}

// events joins and reads what came on ganglia-events.
func (a *air) events(t *testing.T) (events []ganglia.Event) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var joiner ganglia.Joiner
	for _, p := range a.packets {
		u, ok := p.Value.(*livekit.DataPacket_User)
		if !ok || u.User.GetTopic() != topicEvents {
			continue
		}
		if len(u.User.Payload) > ganglia.MaxPacket {
			t.Fatalf("a packet of %d bytes", len(u.User.Payload))
		}
		object, err := joiner.Join(u.User.Payload, 0)
		if err != nil {
			t.Fatal(err)
		}
		if object == nil {
			continue
		}
		e, err := ganglia.Decode(object)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func (a *air) described() (lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.packets {
		lines = append(lines, described(p))
	}
	return lines
}

func publishing(t *testing.T, to carrier, behind func()) *publisher {
	t.Helper()
	p := newPublisher(newRenderer("12345678", protocol.Idle, &Config{}), memory{}, nil, behind)
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = p.run(ctx, to) })
	t.Cleanup(func() { stop(); done.Wait() })
	return p
}

// A thousand events of mixed kinds, artifacts of up to a megabyte among them, arrive whole and in order.
func TestTheOrderOfAThousandEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sky := new(air)
		p := publishing(t, sky, func() { t.Error("behind") })
		random := rand.New(rand.NewPCG(1, 2))
		var want []string
		for i := range 1000 {
			name := fmt.Sprintf("file %d", i)
			var m protocol.Message
			switch i % 4 {
			case 0:
				m = ganglia.Status{Action: ganglia.ReadingFile, Detail: name}
			case 1:
				m = protocol.ResponseTextDelta{Text: name, ResponseID: "r1"}
			default:
				size := random.IntN(40 << 10)
				if i%100 == 2 {
					size = 1<<20 - random.IntN(4096)
				}
				m = ganglia.Artifact{ArtifactType: ganglia.File, Path: name, Content: strings.Repeat("€", size/3)}
			}
			want = append(want, name)
			p.put(session.Event{Seq: uint64(i + 1), Message: m}, who{})
			synctest.Wait() // as fast as they are taken: what waits is bounded by bytes
		}
		var got []string
		for _, e := range sky.events(t) {
			switch e := e.(type) {
			case ganglia.Status:
				got = append(got, e.Detail)
			case ganglia.Content:
				got = append(got, e.Delta)
			case ganglia.Artifact:
				got = append(got, e.Path)
				if strings.Trim(e.Content, "€") != "" {
					t.Errorf("%s is not whole", e.Path)
				}
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%d of %d came, or in another order", len(got), len(want))
		}
		if last := p.shown().last; last != 1000 {
			t.Errorf("the last one carried is %d", last)
		}
	})
}

// Who cannot keep up is told so once, and nothing is kept for it.
func TestTooMuchWaits(t *testing.T) {
	for name, m := range map[string]protocol.Message{
		"events": ganglia.Status{Action: ganglia.Thinking},
		"bytes":  ganglia.Artifact{ArtifactType: ganglia.File, Content: strings.Repeat("x", 256<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sky := &air{stuck: make(chan struct{})}
				behind := 0
				p := publishing(t, sky, func() { behind++ })
				for range maxWaiting + 10 {
					p.put(session.Event{Seq: 1, Message: m}, who{})
				}
				synctest.Wait()
				if behind != 1 || len(p.waiting) != 0 {
					t.Errorf("told %d times, %d wait", behind, len(p.waiting))
				}
				close(sky.stuck)
			})
		})
	}
}

// What has been carried counts no more: however much goes through, as long as it goes through.
func TestMuchGoesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publishing(t, new(air), func() { t.Error("behind") })
		for i := range 2 * maxWaitingBytes / (1 << 20) {
			p.put(session.Event{Seq: uint64(i + 1), Message: ganglia.Artifact{ArtifactType: ganglia.File, Content: strings.Repeat("x", 1<<20)}}, who{})
			synctest.Wait()
		}
	})
}

func TestTheStateIsSaidWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sky := new(air)
		p := publishing(t, sky, func() {})
		p.put(session.Event{Message: protocol.SessionReady{}}, who{})
		for _, s := range []protocol.State{protocol.Idle, protocol.Listening, protocol.Thinking, protocol.Speaking, protocol.Speaking, protocol.Idle} {
			p.put(session.Event{Message: protocol.SessionState{Value: s}}, who{})
		}
		p.agreed(protocol.Terms{TurnDetection: "vad", Features: []string{"text", "vad"}})
		p.restart()
		p.put(session.Event{Message: protocol.SessionReady{Terms: &protocol.Terms{TurnDetection: "none", Features: []string{"vad"}}}}, who{})
		synctest.Wait()
		if got := strings.Join(sky.was(), " "); got != "initializing listening thinking speaking listening listening/vad listening/vad listening/none" {
			t.Errorf("the agent was: %s", got)
		}
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sky := &air{stuck: make(chan struct{})}
		p := publishing(t, sky, func() {})
		p.say(ganglia.SessionHold{Reason: ganglia.HoldIdle})
		began := time.Now()
		p.flush(time.Second)
		if waited := time.Since(began); waited != time.Second || len(sky.described()) != 0 {
			t.Errorf("with a line that is stuck it waited %s", waited)
		}
		close(sky.stuck)
		p.flush(time.Second)
		if got := sky.described(); len(got) != 1 || got[0] != `ganglia-events {"type":"session_hold","reason":"idle"}` {
			t.Errorf("it was said: %q", got)
		}
	})
}

func TestALineThatFailsEndsThePublisher(t *testing.T) {
	p := newPublisher(newRenderer("12345678", protocol.Idle, &Config{}), memory{last: 3}, nil, func() {})
	p.put(session.Event{Seq: 4, Message: ganglia.Status{Action: ganglia.Thinking}}, who{})
	if err := p.run(t.Context(), &air{fails: errLost}); !errors.Is(err, errLost) || p.shown().last != 3 {
		t.Errorf("%v, and the last one carried is %d", err, p.shown().last)
	}
}
