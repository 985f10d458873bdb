package session

import (
	"context"
	"time"

	"vela/protocol"
)

// mailboxSize bounds what waits for the session's goroutine. When it is full, whoever sends waits: a socket then reads
// no further, and TCP slows its client down. Nothing is dropped.
const mailboxSize = 16

// input is one thing that happens to a session. Everything that does comes through [Session.take], and nothing behind
// it reads a clock or draws a random number by itself: what it takes is all that a session depends on, and what it asks an
// [Allowance] and a [VoiceDetector] on the way, which is why a journal has to record only there.
type input interface{}

type (
	joined struct {
		peer  Peer
		hello Hello
	}
	left struct{ peer Peer }

	// fromClient is an event that a peer's client sent.
	fromClient struct {
		peer    Peer
		ref     string // the event's id, if it has one
		message protocol.Message
	}

	// malformed is a message that is no event.
	malformed struct {
		peer Peer
		ref  string
		err  error
	}

	// [Followed] is what a source's agent does that is followed.

	// heard is what the recogniser has made of the utterance; said is what the engine yields (answer.go, hearing.go), and
	// piece what is spoken of its answer (synthesis.go), or, as filled, of a phrase (filler.go).

	// taken says that the recogniser took the frame that was offered to it.
	taken struct{}

	// tick is the session's one timer.
	tick struct{}

	// ended is the end of Run's context.
	ended struct{ cause error }
)

// take waits for the next input. It is false once ctx is done. A turn's own channels are nil while there is none, so
// their cases sleep; and since they belong to that turn, nothing of one that was cancelled can arrive.
func (s *Session) take(ctx context.Context) (in input, ok bool) {
	select {
	case in = <-s.mailbox:
	case h := <-s.hearing.texts():
		in = h
	case s.hearing.offer() <- s.hearing.head():
		in = taken{}
	case o := <-s.answer.signals():
		in = o
	case p := <-s.answer.sounds():
		in = p
	case p := <-s.answer.phrase():
		in = filled(p)
	case g := <-s.following.seen:
		in = g
	case s.answer.offer() <- s.answer.sentence():
		in = offered{}
	case <-s.timer.C:
		in = tick{}
	case <-ctx.Done():
		return nil, false
	}
	s.now = time.Now()
	return in, true
}

// Join makes p a peer: session.ready and session.state go to it first, or what it has missed. It returns [ErrEnded]
// once the session is over.
func (s *Session) Join(ctx context.Context, p Peer, h Hello) error { return s.post(ctx, joined{p, h}) }

// Receive hands over an event that p's client sent, and the event's id, which may be empty. It waits while the session
// is behind, and returns [ErrEnded] once the session is over.
func (s *Session) Receive(ctx context.Context, p Peer, id string, m protocol.Message) error {
	return s.post(ctx, fromClient{p, id, m})
}

// Audio is speech as it came in a binary message, in the format agreed; a room sends none other, whatever was agreed about
// its framing. Whoever hands it to Receive lets go of PCM.
type Audio struct {
	PCM  []byte    // as it was on the wire: little-endian mono PCM16 at [speech.Rate], or one packet of Opus
	Pays Allowance // what it is taken from; nil: the session's
}

// Type implements [protocol.Message].
func (Audio) Type() string { return appendType }

const appendType = "input_audio.append"

// Reject hands over the error of a message from p's client that is no event, so that its answer keeps its place.
func (s *Session) Reject(ctx context.Context, p Peer, id string, err error) error {
	return s.post(ctx, malformed{p, id, err})
}

// Leave takes p away. Unlike the others it cannot fail: a session that is over has no peers.
func (s *Session) Leave(p Peer) { _ = s.post(context.Background(), left{p}) }

func (s *Session) post(ctx context.Context, in input) error {
	select {
	case s.mailbox <- in:
		select {
		case <-s.done: // the mailbox has room, but nobody empties it any more
			return ErrEnded
		default:
			return nil
		}
	case <-s.done:
		return ErrEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
