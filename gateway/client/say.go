package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// SayOptions is how to say something. Its zero value works.
type SayOptions struct {
	// Fast sends as fast as the gateway takes audio instead of at the speed of speech: the first minute at once, the
	// rest at twice the speed of speech.
	Fast bool
	// HandsFree leaves it to the gateway to notice that it is over: silence follows what is said, until the turn has ended,
	// in a session with turnDetection "vad".
	HandsFree bool
	// On is called with every event of the turn as it arrives, from the goroutine that called Say; it may call Send.
	On func(protocol.Message)
}

// Reply is what became of a turn.
type Reply struct {
	Transcript string // what was recognised; empty when nothing was
	Text       string // the answer, as far as it came
	Completed  bool   // the answer is whole
}

// Say speaks one push-to-talk turn, mono samples at [speech.Rate], and waits until the session is idle again. Sending
// and receiving go on side by side, so partial transcripts arrive while it speaks.
//
// An error event of the gateway is returned as an [*EventError] once the turn is over; the first, if there are several.
// The connection stays usable then. A lost or closed connection is a [*CloseError].
func (c *Client) Say(ctx context.Context, samples []int16, o SayOptions) (Reply, error) {
	if _, err := c.Ready(ctx); err != nil {
		return Reply{}, err
	}
	return say(ctx, c, samples, o)
}

// link is what a turn needs of a connection.
type link interface {
	Send(ctx context.Context, m protocol.Message) error
	SendAudio(ctx context.Context, samples []int16) error
	Receive(ctx context.Context) (protocol.Message, error)
}

// say sends in a goroutine of its own and returns after it. When the turn is over early, because the gateway refused or
// somebody cancelled, the sender stops between two chunks and not within one, which would cost the connection.
func say(ctx context.Context, l link, samples []int16, o SayOptions) (Reply, error) {
	over := make(chan struct{})
	var sender sync.WaitGroup
	var sendErr error
	sender.Go(func() { sendErr = speak(ctx, l, samples, o, over) })

	t := turn{on: o.On}
	err := t.follow(ctx, l)
	close(over)
	sender.Wait()
	if err == nil && !errors.Is(sendErr, errOver) {
		err = sendErr
	}
	if err == nil && t.failed != nil {
		err = t.failed
	}
	return t.result(), err
}

// ChunkLength is how much audio [Client.Say] puts into one message.
const ChunkLength = 40 * time.Millisecond

// Append sends speech, mono samples at [speech.Rate], as [Client.Say] does: chunk by chunk at the speed of speech, or as
// fast as the gateway takes it. It neither commits nor receives, and may be called from any goroutine.
func (c *Client) Append(ctx context.Context, samples []int16, fast bool) error {
	return Speak(ctx, samples, fast, c.SendAudio)
}

// Speak hands out speech, mono samples at [speech.Rate], as [Client.Append] sends it, chunk by chunk.
func Speak(ctx context.Context, samples []int16, fast bool, send func(context.Context, []int16) error) error {
	return appendAudio(ctx, send, samples, fast, nil)
}

// speak appends the samples and commits. Hands-free it is silent until the turn is over, and commits if it never is.
func speak(ctx context.Context, l link, samples []int16, o SayOptions, over <-chan struct{}) error {
	if o.HandsFree { // in one stream: a pause between the two would be one of the microphone's
		samples = slices.Concat(samples, make([]int16, speech.Count(longestSilence, speech.Rate)))
	}
	if err := appendAudio(ctx, l.SendAudio, samples, o.Fast && !o.HandsFree, over); err != nil {
		return err
	}
	return l.Send(ctx, protocol.InputAudioCommit{})
}

// longestSilence is how long a hands-free turn is waited for.
const longestSilence = 2 * time.Minute

// errOver ends the sender of a turn that is over.
var errOver = errors.New("client: the turn is over")

// appendAudio sends each chunk when it is due, until over is closed.
func appendAudio(ctx context.Context, send func(context.Context, []int16) error, samples []int16, fast bool, over <-chan struct{}) error {
	const size = int(ChunkLength * speech.Rate / time.Second)
	began := time.Now()
	for at := 0; at < len(samples); at += size {
		chunk := samples[at:min(at+size, len(samples))]
		sent := speech.Duration(at+len(chunk), speech.Rate)
		if err := waitUntil(ctx, began.Add(due(sent, fast)), over); err != nil {
			return err
		}
		if err := send(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// The gateway takes a minute of audio at any speed and holds the average to twice the speed of speech after it. A second
// less than the minute leaves room for a first chunk that was slow to arrive.
const burst = time.Minute - time.Second

// due is when, after the first chunk, so much audio may have been sent.
func due(sent time.Duration, fast bool) time.Duration {
	if fast {
		return max(0, (sent-burst)/2)
	}
	return sent
}

// waitUntil returns why not to go on, nil once it is time.
func waitUntil(ctx context.Context, t time.Time, over <-chan struct{}) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-over:
		return errOver
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return ctx.Err()
	}
}

// turn is what has been received of one.
type turn struct {
	on     func(protocol.Message)
	begun  bool // something of it has come: an idle from now on is its end
	reply  Reply
	text   strings.Builder
	failed error
}

// follow receives until the turn is over.
func (t *turn) follow(ctx context.Context, l link) error {
	for {
		m, err := l.Receive(ctx)
		if err != nil {
			return err
		}
		if t.on != nil {
			t.on(m)
		}
		if t.take(m) {
			return nil
		}
	}
}

// take says whether the turn is over.
func (t *turn) take(m protocol.Message) bool {
	switch m := m.(type) {
	case protocol.SessionState:
		if m.Value == protocol.Idle {
			return t.begun
		}
		t.begun = true
	case protocol.TranscriptFinal:
		t.begun, t.reply.Transcript = true, m.Text
	case protocol.ResponseTextDelta:
		t.text.WriteString(m.Text)
	case protocol.ResponseCompleted:
		t.reply.Completed = true
	case protocol.Error:
		t.begun = true
		if t.failed == nil {
			t.failed = &EventError{m}
		}
	}
	return false
}

func (t *turn) result() Reply {
	r := t.reply
	r.Text = t.text.String()
	return r
}
