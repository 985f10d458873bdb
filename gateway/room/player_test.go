package room

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// track is a [speaker] that keeps when it was sent what.
type track struct {
	mu     sync.Mutex
	began  time.Time
	times  []time.Duration
	frames [][]int16
}

func (k *track) write(samples []int16, _ time.Time) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.times = append(k.times, time.Since(k.began))
	k.frames = append(k.frames, slices.Clone(samples))
	return 80, nil
}

// sent is when the frames were.
func (k *track) sent() []time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.times)
}

func (k *track) samples() (all []int16) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.frames {
		all = append(all, f...)
	}
	return all
}

func playing(t *testing.T) (*player, *track) {
	t.Helper()
	p, k := newPlayer(nil), &track{began: time.Now()}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { p.run(ctx, k) })
	t.Cleanup(func() { stop(); done.Wait() })
	return p, k
}

func tone(n int) []int16 { return slices.Repeat([]int16{1000}, n) }

func (p *player) told(t *testing.T) played {
	t.Helper()
	select {
	case now := <-p.progress:
		return now
	default:
		t.Fatal("nothing was told")
		return played{}
	}
}

// A second of sound takes a second, a frame every 20 ms, and what has been played is told on the way.
func TestTheTrackIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := playing(t)
		p.put("r1", 0, outRate, tone(outRate), false)
		pass(505 * time.Millisecond)
		if n := len(k.sent()); n != 13 {
			t.Errorf("%d frames after half a second", n)
		}
		if now := p.told(t); now != (played{"r1", 480 * time.Millisecond}) {
			t.Errorf("told %v", now)
		}
		pass(time.Second)
		for i, at := range k.sent() {
			if want := time.Duration(i) * frameTime; at != want {
				t.Fatalf("frame %d came after %s, want %s", i, at, want)
			}
		}
		if now := p.told(t); len(k.sent()) != 25 || now.at != time.Second {
			t.Errorf("%d frames, and told %s", len(k.sent()), now.at)
		}
	})
}

// What waits is forgotten at an interruption, and was not played.
func TestClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := playing(t)
		p.put("r1", 0, outRate, tone(outRate), false)
		pass(105 * time.Millisecond)
		p.clear()
		synctest.Wait()
		if now := p.told(t); len(k.sent()) != 3 || now.at != 120*time.Millisecond {
			t.Errorf("%d frames, and told %s", len(k.sent()), now.at)
		}
		pass(time.Second)
		if len(k.sent()) != 3 {
			t.Errorf("%d frames: it went on", len(k.sent()))
		}
		p.put("r2", 0, outRate, tone(frameSize), false)
		synctest.Wait()
		if now := p.told(t); now != (played{"r2", frameTime}) {
			t.Errorf("told %v of the next answer", now)
		}
	})
}

// Sound in pieces that are no frames is joined; what is left at the end is filled with silence.
func TestPiecesThatAreNoFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := playing(t)
		for range 10 {
			p.put("r1", 0, outRate, tone(500), false)
			pass(time.Millisecond)
		}
		pass(time.Second)
		all := k.samples()
		if len(all) != 6*frameSize || slices.Contains(all[:5000], 0) || slices.ContainsFunc(all[5000:], func(s int16) bool { return s != 0 }) {
			t.Errorf("%d samples", len(all))
		}
		if now := p.told(t); now.at < 208*time.Millisecond || now.at > 209*time.Millisecond {
			t.Errorf("told %s", now.at)
		}
	})
}

// What is not to be heard counts as played at once; so does what waits when it is switched off.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := playing(t)
		p.put("r1", 0, outRate, tone(outRate), true)
		if now := p.told(t); now.at != time.Second {
			t.Errorf("told %s", now.at)
		}
		p.put("r1", 1000, outRate, tone(outRate), false)
		pass(10 * time.Millisecond)
		p.mute()
		synctest.Wait()
		if now := p.told(t); now.at != 2*time.Second || len(k.sent()) != 1 {
			t.Errorf("told %s after %d frames", now.at, len(k.sent()))
		}
	})
}

// A session that speaks at another rate is resampled, and its clock is that of what is played.
func TestAnotherRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := playing(t)
		p.put("r1", 0, 48000, tone(48000), false)
		pass(2 * time.Second)
		if n := len(k.sent()); n < 24 || n > 26 {
			t.Errorf("%d frames", n)
		}
		if now := p.told(t); now.at < 960*time.Millisecond || now.at > time.Second {
			t.Errorf("told %s", now.at)
		}
	})
}

// What is held back while somebody seems to speak goes on where it was, or is forgotten.
func TestHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := playing(t)
		p.put("r1", 0, outRate, tone(outRate), false)
		pass(105 * time.Millisecond)
		p.hold(true)
		pass(time.Second)
		if n := len(k.sent()); n != 3 {
			t.Errorf("%d frames while it was held", n)
		}
		p.hold(false)
		pass(2 * time.Second)
		if now := p.told(t); len(k.sent()) != 25 || now.at != time.Second {
			t.Errorf("%d frames in all, and told %s", len(k.sent()), now.at)
		}
		p.put("r2", 0, outRate, tone(outRate), false)
		p.hold(true)
		p.clear()
		p.hold(false)
		pass(time.Second)
		if n := len(k.sent()); n > 26 {
			t.Errorf("%d frames: what was forgotten was played", n)
		}
	})
}

// pass lets time pass, and then waits until nothing moves any more.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
