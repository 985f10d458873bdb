package server

import (
	"context"
	"sync"
	"time"

	"vela/protocol"
	"vela/session"
)

// The bounds of what waits to be written to one client. Past either, the client is a slow consumer: what waits is
// dropped and the connection is closed with 4003. A version 2 client resumes, and loses nothing. The number is far above
// what an agent says at once that has its whole answer ready, a word an event; the bytes bound the memory.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 1 << 20
)

// goodbye is how long a client that does not read has before its connection is cut.
const goodbye = 5 * time.Second

// outbox is what waits to be written to one client. The session puts events in and never waits; a goroutine that is
// there only while something waits takes them out. The lock guards the handover between the two, nothing else.
type outbox struct {
	version int // of the protocol
	write   func(ctx context.Context, frame []byte, binary bool) error
	bye     func(context.Context, protocol.CloseCode, string)
	ctx     context.Context
	cut     context.CancelFunc // ends the connection without another word
	timer   *time.Timer        // cuts when goodbye takes too long; nil before the end

	mu      sync.Mutex
	waiting *batch       // nil while nothing waits
	signals Subscription // what else may be written while nothing waits; nil where the client has not asked for any
	binary  bool         // the client has asked for sound in binary messages
	writing bool
	ended   bool // nothing more is taken
	code    protocol.CloseCode
	reason  string
	wg      sync.WaitGroup // the writer
}

// batch is some encoded events, one behind the other.
type batch struct {
	data []byte
	ends []end

	// How much of it a resume put there, which is not held against the client.
	free, freeBytes int
}

// end is where an event ends.
type end struct {
	at     int
	binary bool
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func (o *outbox) open(ctx context.Context, cut context.CancelFunc, version int, write func(context.Context, []byte, bool) error, bye func(context.Context, protocol.CloseCode, string)) {
	o.ctx, o.cut, o.version, o.write, o.bye = ctx, cut, version, write, bye
}

// put encodes one event behind those that wait.
func (o *outbox) put(e session.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	b := o.add(e)
	if len(b.ends)-b.free > maxWaiting || len(b.data)-b.freeBytes > maxWaitingBytes {
		o.waiting = nil
		o.end(protocol.CloseSlowConsumer, "too much was waiting to be read")
	}
	o.wake()
}

// putAll encodes what a client has missed. It is bounded by what a session keeps, and does not count as waiting.
func (o *outbox) putAll(events []session.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || len(events) == 0 {
		return
	}
	var b *batch
	for _, e := range events {
		b = o.add(e)
	}
	b.free, b.freeBytes = len(b.ends), len(b.data)
	o.wake()
}

// add encodes an event in the client's version, which may have nothing for it. Call it with the lock held.
func (o *outbox) add(e session.Event) *batch {
	if o.waiting == nil {
		o.waiting = batches.Get().(*batch)
	}
	b := o.waiting
	before, binary := len(b.data), false
	if o.version == 1 {
		b.data = protocol.AppendTo(b.data, e.Message)
	} else {
		b.data, binary = o.encode2(b.data, e)
	}
	if len(b.data) > before {
		b.ends = append(b.ends, end{len(b.data), binary})
	}
	return b
}

// encode2 encodes an event as version 2 writes it. Sound is a binary message where the session.ready before it said so.
func (o *outbox) encode2(dst []byte, e session.Event) (encoded []byte, binary bool) {
	switch m := e.Message.(type) {
	case protocol.SessionReady:
		o.binary = m.Terms != nil && m.Audio.Output != nil && m.Audio.Output.Framing == "binary"
	case protocol.ResponseAudioDelta:
		if o.binary {
			return protocol.AppendAudio(dst, e.Seq, m), true
		}
	}
	return protocol.AppendEnvelope(dst, protocol.Envelope{Seq: e.Seq, TS: e.At, Message: e.Message}), false
}

// close lets what waits be written, then says goodbye. The first reason stays.
func (o *outbox) close(code protocol.CloseCode, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.end(code, reason)
		o.wake()
	}
}

// end takes nothing more. Call it with the lock held.
func (o *outbox) end(code protocol.CloseCode, reason string) {
	o.ended, o.code, o.reason = true, code, reason
	o.timer = time.AfterFunc(goodbye, o.cut)
}

// hangUp follows the reader's end: with nobody to say goodbye to, what waits is dropped.
func (o *outbox) hangUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended = true
		o.cut()
	}
}

// wake starts the writer unless there is one. Call it with the lock held.
func (o *outbox) wake() {
	if !o.writing {
		o.writing = true
		o.wg.Go(o.drain)
	}
}

// drain writes until nothing waits.
func (o *outbox) drain() {
	for {
		b, last := o.next()
		if b != nil {
			o.writeAll(b)
			continue
		}
		if last {
			o.bye(o.ctx, o.code, o.reason)
		}
		return
	}
}

// next takes what waits, and without that one signal. Without any, the writer is gone; last says that a goodbye is due.
func (o *outbox) next() (b *batch, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, o.waiting = o.waiting, nil
	if b == nil && !o.ended {
		b = o.nextSignal()
	}
	if b == nil && (!o.ended || o.code == 0) {
		o.writing = false
	}
	return b, o.ended && o.code != 0
}

func (o *outbox) writeAll(b *batch) {
	start := 0
	for _, end := range b.ends {
		if o.write(o.ctx, b.data[start:end.at], end.binary) != nil {
			o.cut() // the reader notices, and ends the socket
			break
		}
		start = end.at
	}
	if cap(b.data) <= 64<<10 {
		*b = batch{data: b.data[:0], ends: b.ends[:0]}
		batches.Put(b)
	}
}

// wait returns once the writer is gone. It is called after the last put.
func (o *outbox) wait() {
	o.wg.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
	}
}

// closedWith is the close code that was sent, 0 if none was.
func (o *outbox) closedWith() protocol.CloseCode {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.code
}

// follow has signals written, too, whenever nothing of the session waits. They wait with the subscription, not here: a
// client that does not read loses signals, and not its connection.
func (o *outbox) follow(s Subscription) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.signals = s
}

// signalled says that there are signals.
func (o *outbox) signalled() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.wake()
	}
}

// nextSignal is one signal, behind how many were missed before it; nil without any. Call it with the lock held.
func (o *outbox) nextSignal() *batch {
	if o.signals == nil {
		return nil
	}
	s, ok := o.signals.Next()
	if !ok {
		return nil
	}
	b := batches.Get().(*batch)
	if s.Missed > 0 {
		b.data = protocol.AppendEnvelope(b.data, protocol.Envelope{Message: protocol.SignalMissed{Count: s.Missed}})
		b.ends = append(b.ends, end{at: len(b.data)})
	}
	b.data = protocol.AppendSignal(b.data, s.Text)
	b.ends = append(b.ends, end{at: len(b.data)})
	return b
}
