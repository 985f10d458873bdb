package room

import (
	"context"
	"sync"
	"time"

	"vela/session/speech"
)

// The answer's sound is Opus at 24 kHz, in packets of 40 ms.
const (
	outRate    = 24000
	frameTime  = speech.PacketLength
	frameSize  = int(outRate * frameTime / time.Second) // samples
	ackEvery   = 3                                      // frames: eight acknowledgements a second
	maxCatchUp = 5                                      // frames that may be sent at once after the machine was busy
	shortWait  = 60 * time.Millisecond                  // how long less than a frame waits for the rest of it
)

// speaker is the published track. It is called from the player's goroutine only.
type speaker interface {
	// write sends a frame, which is due at that time, and returns the packet's size in bytes.
	write(samples []int16, due time.Time) (int, error)
}

// player plays the answer into the room at the speed of speech, on a clock of its own, and says how much of it the track
// has played: what the session takes as heard. The session puts sound in and never waits; it sends no more than 400 ms
// ahead of what it has been told was played, so that what waits here is bounded by the session.
type player struct {
	metrics  *Metrics
	progress chan played   // of size 1: the newest
	wake     chan struct{} // of size 1

	mu       sync.Mutex
	response string
	rate     int // Hz, of what the session sends
	resample *speech.Resampler
	waiting  []int16 // at outRate
	from     int     // where in the answer waiting begins, in samples at outRate
	held     bool    // somebody speaks: what waits is played if it was nothing
}

func newPlayer(m *Metrics) *player {
	return &player{metrics: m, progress: make(chan played, 1), wake: make(chan struct{}, 1)}
}

// put adds sound of an answer. What is not to be heard counts as played.
func (p *player) put(response string, startMs int64, rate int, samples []int16, quiet bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if response != p.response || rate != p.rate {
		p.response, p.rate, p.waiting, p.resample = response, rate, nil, nil
		p.from = speech.Count(time.Duration(startMs)*time.Millisecond, outRate)
		if rate != outRate {
			p.resample, _ = speech.NewResampler(rate, outRate) // the session has let only good rates in
		}
	}
	if p.resample != nil {
		samples = p.resample.Process(nil, samples)
	}
	if quiet {
		p.from += len(samples)
		p.say()
		return
	}
	enough := len(p.waiting) >= frameSize // the player knows of it
	p.waiting = append(p.waiting, samples...)
	if enough {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// hold keeps what waits from being played, or lets it go on.
func (p *player) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// clear forgets what has not been played: the answer was interrupted.
func (p *player) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		p.waiting = nil
		p.say()
	}
}

// mute takes what waits as played: it is not to be heard.
func (p *player) mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from += len(p.waiting)
	p.waiting = nil
	p.say()
}

// say tells how much has been played. Call it with the lock held.
func (p *player) say() {
	if p.response == "" {
		return
	}
	now := played{p.response, speech.Duration(p.from, outRate)}
	for {
		select {
		case p.progress <- now:
			return
		default:
		}
		select {
		case <-p.progress:
		default:
		}
	}
}

// run plays until ctx is done.
func (p *player) run(ctx context.Context, out speaker) {
	timer := stopped()
	defer timer.Stop()
	wait := func(d time.Duration) (woken, over bool) {
		timer.Reset(d)
		defer timer.Stop()
		select {
		case <-p.wake:
			return true, false
		case <-timer.C:
			return false, false
		case <-ctx.Done():
			return false, true
		}
	}
	var due time.Time // when the next frame is; zero after a pause
	for sent, short := 0, false; ctx.Err() == nil; {
		switch n := p.ready(); {
		case n == 0:
			due = time.Time{}
			_, _ = wait(time.Hour)
			continue
		case n < frameSize && !short: // more of it may come
			woken, _ := wait(shortWait)
			short = !woken
			continue
		}
		now := time.Now()
		if due.IsZero() || now.Sub(due) > maxCatchUp*frameTime {
			due = now
		}
		for ahead := due.Sub(now); ahead > 0; ahead = time.Until(due) {
			if _, over := wait(ahead); over {
				return
			}
		}
		short = false
		samples, more := p.take()
		if samples == nil {
			continue // it was interrupted meanwhile
		}
		p.metrics.frameOut(out.write(samples, due))
		due = due.Add(frameTime)
		if sent++; !more || sent%ackEvery == 0 {
			p.tell()
		}
	}
}

// ready is how many samples wait, and may be played.
func (p *player) ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		return 0
	}
	return len(p.waiting)
}

// take takes a frame that is played now, and says whether more waits. One that is not full is filled with silence.
func (p *player) take() (samples []int16, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(frameSize, len(p.waiting))
	if n == 0 || p.held {
		return nil, false
	}
	frame := make([]int16, frameSize)
	copy(frame, p.waiting[:n])
	p.waiting = p.waiting[n:]
	p.from += n
	return frame, len(p.waiting) > 0
}

func (p *player) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say()
}
