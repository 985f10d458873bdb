package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vela/e2e/bench/proc"
)

const (
	duplexFrame = 20 * time.Millisecond
	duplexAck   = 5                      // frames between two acknowledgements: ten a second, as the page does
	duplexLate  = 20 * time.Millisecond  // p99 of the delay of a frame, at most
	duplexAhead = 400 * time.Millisecond // of sound that a gateway sends before it has been played
	duplexMost  = 6000
	duplexText  = "Extraordinarily uncharacteristic circumnavigation notwithstanding, thunderstorms. " // few deltas, much to speak
	duplexHold  = 100                                                                                  // sessions to begin with, whose memory is measured
)

var (
	duplexStart = frame(`{"type":"session.start","payload":{"turns":"agent","agent":"echo","interrupt":false,` +
		`"audio":{"input":{"encoding":"pcm16","rate":16000,"framing":"binary"},"output":{"encoding":"pcm16","rate":16000,"framing":"binary"}}}}`)
	duplexAsk   = frame(`{"type":"input_text.submit","payload":{"text":"` + strings.Repeat(duplexText, 45) + `"}}`) // 250 s of sound
	duplexSound = sound(make([]byte, voiceBytes))
	duplexEcho  = sound(make([]byte, voiceBytes))
	duplexBye   = frame(`{"type":"session.close","payload":{}}`)
)

// duplex measures how many sessions with sound both ways this machine carries, load included: each client sends 20 ms of
// sound fifty times a second, and plays an answer that its gateway sends as it is acknowledged; recogniser, agent and voice
// cost little. It is the highest number with which the p99 of a frame's delay stays under 20 ms: from the acknowledgement
// that lets it be sent to its arrival. The floor is a bare server that answers each frame with one of the same size.
func (b *bench) duplex() error {
	speech, err := proc.Start(b.speech)
	if err != nil {
		return err
	}
	defer speech.Stop()
	file, err := speechFile(speech.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(file)) }()
	fmt.Printf("sessions with sound both ways, 20 ms frames, p99 of a frame's delay under %v\n", duplexLate)
	var most, memory [2]float64
	for i, name := range []string{"bare", "vela"} {
		open := echoes
		run := func() (*proc.Process, error) { return proc.Start(b.bare, "-size", fmt.Sprint(voiceBytes+16)) }
		if name == "vela" {
			open = converses
			run = func() (*proc.Process, error) {
				return proc.Start(b.vela, "serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--max-sessions", "10000", "--config", file, "--resume", "1s")
			}
		}
		p, err := run()
		if err != nil {
			return err
		}
		c := &crowd{p: p, open: open, window: b.each * 2 / 3}
		held, err := c.search()
		most[i], memory[i] = float64(held.sessions), c.memory
		c.shrink(0)
		p.Stop()
		if err != nil {
			return err
		}
		fmt.Printf("  %-6s %8d sessions, p50 %5.2f ms, p99 %6.2f ms, %.2f cores of the server, %d frames; %.0f KB of memory for each of %d\n",
			name, held.sessions, ms(held.p50), ms(held.p99), held.cores, held.frames, memory[i]/1e3, duplexHold)
	}
	fmt.Printf("  ratio  %8.2f of the bare server's sessions, %.1f times the memory of one\n\n", most[1]/most[0], memory[1]/memory[0])
	return nil
}

// talker is a session, or a connection to the bare server.
type talker struct {
	*conn
	stop chan struct{}
	mu   sync.Mutex
	took []time.Duration // while it is measured
	err  error
}

// crowd is many of them at one server.
type crowd struct {
	p         *proc.Process
	open      func(*talker, *atomic.Bool) error
	window    time.Duration
	talkers   []*talker
	measuring atomic.Bool
	wg        sync.WaitGroup
	memory    float64 // bytes of each of the first duplexHold
}

// holds is what was measured with so many.
type holds struct {
	sessions, frames int
	p50, p99         time.Duration
	cores            float64
}

// search finds the highest number that holds: it grows by half until one does not, and then tries between.
func (c *crowd) search() (best holds, err error) {
	time.Sleep(time.Second) // start-up has settled
	before := c.p.Resident()
	low, high := 0, duplexMost
	for n := duplexHold; n > low && n < high; {
		got, err := c.with(n)
		if err == nil && got.p99 >= duplexLate { // another program may have been in the way
			got, err = c.with(n)
		}
		if err != nil {
			return best, err
		}
		if c.memory == 0 {
			c.memory = float64(c.p.Resident()-before) / duplexHold
		}
		if got.p99 < duplexLate {
			best, low = got, n
		} else {
			high = n
		}
		if n = low + low/2; n >= high || low == 0 {
			n = (low + high) / 2
		}
		if high-low <= high/16 {
			break
		}
	}
	return best, nil
}

// with measures that many.
func (c *crowd) with(n int) (holds, error) {
	c.shrink(n)
	for len(c.talkers) < n {
		if err := c.grow(); err != nil {
			return holds{}, err
		}
	}
	time.Sleep(time.Second) // all speak
	for _, t := range c.talkers {
		t.mu.Lock()
		t.took = t.took[:0]
		t.mu.Unlock()
	}
	cpu, from := c.p.CPU(), time.Now()
	c.measuring.Store(true)
	time.Sleep(c.window)
	c.measuring.Store(false)
	used, long := c.p.CPU()-cpu, time.Since(from)
	var all []time.Duration
	for _, t := range c.talkers {
		t.mu.Lock()
		all = append(all, t.took...)
		err := t.err
		t.mu.Unlock()
		if err != nil {
			return holds{}, err
		}
	}
	// Who hears nothing any more has no delays: half of the frames that are due are as good as none.
	if len(all) < n*int(c.window/(2*duplexFrame))/2 {
		return holds{sessions: n, frames: len(all), p99: time.Hour}, nil
	}
	return holds{n, len(all), percentile(all, 0.5), percentile(all, 0.99), used.Seconds() / long.Seconds()}, nil
}

func (c *crowd) grow() error {
	conn, err := dial(c.p.Addr, "", version2)
	if err != nil {
		return err
	}
	t := &talker{conn: conn, stop: make(chan struct{})}
	c.talkers = append(c.talkers, t)
	c.wg.Go(func() {
		err := c.open(t, &c.measuring)
		select {
		case <-t.stop:
		default:
			t.mu.Lock()
			t.err = err
			t.mu.Unlock()
		}
	})
	return nil
}

func (c *crowd) shrink(n int) {
	for len(c.talkers) > n {
		last := c.talkers[len(c.talkers)-1]
		c.talkers = c.talkers[:len(c.talkers)-1]
		close(last.stop)
		_, _ = last.Write(duplexBye) // the bare server answers it like any other
		last.Close()
	}
	if n == 0 {
		c.wg.Wait()
	}
}

// every calls do fifty times a second, out of step with the others, until the talker stops.
func (t *talker) every(do func(n int) error) error {
	time.Sleep(rand.N(duplexFrame))
	ticks := time.NewTicker(duplexFrame)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-t.stop:
			return nil
		case <-ticks.C:
		}
		if err := do(n); err != nil {
			return err
		}
	}
}

// echoes sends frames to a server that answers each.
func echoes(t *talker, measuring *atomic.Bool) error {
	var sent []time.Time
	var reader sync.WaitGroup
	defer reader.Wait()
	defer t.Close()
	reader.Go(func() {
		for {
			if _, _, err := t.message(); err != nil {
				return
			}
			t.mu.Lock()
			if len(sent) > 0 { // the goodbye is none
				if measuring.Load() {
					t.took = append(t.took, time.Since(sent[0]))
				}
				sent = sent[1:]
			}
			t.mu.Unlock()
		}
	})
	return t.every(func(int) error {
		t.mu.Lock()
		sent = append(sent, time.Now())
		t.mu.Unlock()
		_, err := t.Write(duplexEcho)
		return err
	})
}

// heardAt is an acknowledgement.
type heardAt struct {
	played time.Duration
	at     time.Time
}

var errTalk = errors.New("the gateway does not speak")

// converses asks for a long answer, sends sound meanwhile, and plays what comes.
func converses(t *talker, measuring *atomic.Bool) error {
	if _, err := t.Write(duplexStart); err != nil {
		return err
	}
	if err := t.until(`"idle"`); err != nil {
		return errors.Join(errTalk, err)
	}
	if _, err := t.Write(duplexAsk); err != nil {
		return err
	}
	var got time.Duration // of sound
	var began time.Time
	var acks []heardAt
	var reader sync.WaitGroup
	defer reader.Wait()
	defer t.Close()
	reader.Go(func() {
		for {
			op, m, err := t.message()
			if err != nil {
				return
			}
			if op != opBinary || len(m) < 16 {
				continue
			}
			now := time.Now()
			t.mu.Lock()
			if began.IsZero() {
				began = now
			}
			got = time.Duration(binary.LittleEndian.Uint32(m[4:]))*time.Millisecond + time.Duration(len(m)-16)*time.Millisecond/32
			for len(acks) > 0 && acks[0].played+duplexAhead < got {
				acks = acks[1:]
			}
			if len(acks) > 0 && measuring.Load() {
				t.took = append(t.took, now.Sub(acks[0].at))
			}
			t.mu.Unlock()
		}
	})
	var buf []byte
	return t.every(func(n int) error {
		buf = append(buf[:0], duplexSound...)
		t.mu.Lock()
		if n%duplexAck == 0 && !began.IsZero() {
			now := time.Now()
			played := min(got, now.Sub(began)).Truncate(time.Millisecond)
			acks = append(acks, heardAt{played, now})
			buf = append(buf, frame(fmt.Sprintf(`{"type":"playback.ack","payload":{"responseId":"r1","playedMs":%d}}`, played.Milliseconds()))...)
		}
		t.mu.Unlock()
		_, err := t.Write(buf)
		return err
	})
}
