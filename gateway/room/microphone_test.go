package room

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

// wire is the [packets] of a test.
type wire struct {
	packets chan *rtp.Packet

	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{}
}

func newWire() *wire {
	return &wire{packets: make(chan *rtp.Packet, 64), changed: make(chan struct{}, 1)}
}

func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	w.deadline = t
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return nil
}

func (w *wire) read() (*rtp.Packet, error) {
	for {
		w.mu.Lock()
		deadline := w.deadline
		w.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			late = time.After(time.Until(deadline))
		}
		select {
		case p, ok := <-w.packets:
			if !ok {
				return nil, errors.New("the track is gone")
			}
			return p, nil
		case <-w.changed:
		case <-late:
			return nil, os.ErrDeadlineExceeded
		}
	}
}

// send sends 20 ms of speech that begins with n.
func (w *wire) send(seq uint16, n int16) { w.sendAt(seq, uint32(seq)*960, n) }

func (w *wire) sendAt(seq uint16, at uint32, n int16) { w.packet(seq, at, byte(n), 'l', 'o', 'u', 'd') }

// still sends what is sent in silence once in a while, of a level that is above it, or silence as it is.
func (w *wire) still(seq uint16, at uint32, n int16) { w.packet(seq, at, byte(n)) }
func (w *wire) silence(seq uint16, at uint32, n int16) {
	w.packet(seq, at, byte(n), 's', 'o', 'f', 't')
}

func (w *wire) packet(seq uint16, at uint32, payload ...byte) {
	w.packets <- &rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: seq, Timestamp: at}, Payload: payload}
}

// plain decodes a packet into 20 ms, which begin with its first byte.
type plain struct{}

func (plain) Decode(packet []byte) ([]int16, error) {
	if packet[0] == 255 {
		return nil, errors.New("no Opus")
	}
	samples := slices.Repeat([]int16{8000}, 320)
	if string(packet[1:]) == "soft" {
		clear(samples)
	}
	samples[0] = int16(packet[0])
	return samples, nil
}

// listening runs a microphone; what it hears, in pieces of 20 ms, and where it fell silent (-1), comes out of the function.
func listening(t *testing.T) (*microphone, *wire, func() []int16) {
	t.Helper()
	w := newWire()
	m := &microphone{who: who{"ann", "TR_1"}, sid: "TR_1", packets: w}
	var heard []int16
	var mu sync.Mutex
	var done sync.WaitGroup
	done.Go(func() {
		m.run(t.Context(), plain{}, func(in input) bool {
			mu.Lock()
			defer mu.Unlock()
			switch in := in.(type) {
			case frame:
				for piece := range slices.Chunk(in.samples, 320) {
					heard = append(heard, piece[0])
				}
			case fell:
				heard = append(heard, -1)
			}
			return true
		}, nil)
	})
	t.Cleanup(func() { m.close(); done.Wait() })
	return m, w, func() []int16 {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(heard)
	}
}

func TestTheMicrophone(t *testing.T) {
	for name, c := range map[string]struct {
		does func(*microphone, *wire)
		want []int16
	}{
		"packets in order": {func(_ *microphone, w *wire) { w.send(1, 1); w.send(2, 2); w.send(3, 3) }, []int16{1, 2, 3}},
		"packets out of order are put in order": {func(_ *microphone, w *wire) {
			w.send(1, 1)
			w.send(3, 3)
			w.send(2, 2)
			w.send(4, 4)
		}, []int16{1, 2, 3, 4}},
		"a lost one is silence, after a while": {func(_ *microphone, w *wire) {
			w.send(1, 1)
			w.send(3, 3)
			pass(2 * reorder)
		}, []int16{1, 0, 3}},
		"what was left out in silence is filled in": {func(_ *microphone, w *wire) { w.send(1, 1); w.sendAt(2, 960*11, 2) },
			[]int16{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}},
		"but not minutes of it":          {func(_ *microphone, w *wire) { w.send(1, 1); w.sendAt(2, 960*11000, 2) }, []int16{1, 2}},
		"what is no Opus is passed over": {func(_ *microphone, w *wire) { w.send(1, 1); w.send(2, 255); w.send(3, 3) }, []int16{1, 0, 3}},
		"after a mute, what was under way still counts, and then silence falls once": {func(m *microphone, w *wire) {
			w.send(1, 1)
			synctest.Wait()
			m.mute(true)
			pass(drain / 2)
			w.send(2, 2)
			pass(2 * drain)
			w.send(3, 3)
			pass(time.Second)
		}, []int16{1, 2, -1}},
		"the next press begins anew": {func(m *microphone, w *wire) {
			w.send(1, 1)
			synctest.Wait()
			m.mute(true)
			pass(2 * drain)
			m.mute(false)
			w.sendAt(2, 960*5000, 2)
			synctest.Wait()
			m.mute(true)
			pass(2 * drain)
		}, []int16{1, -1, 2, -1}},
		"a press that follows at once goes on": {func(m *microphone, w *wire) {
			w.send(1, 1)
			synctest.Wait()
			m.mute(true)
			pass(drain / 2)
			m.mute(false)
			pass(2 * drain)
			w.send(2, 2)
		}, []int16{1, 2}},
		"silence that is not sent is heard as it passes": {func(_ *microphone, w *wire) {
			w.send(1, 1)
			w.still(2, 960*2, 2)
			pass(patience + 3*silentStep)
		}, []int16{1, 2, 0, 0, 0}},
		"and so is what begins as silence": {func(_ *microphone, w *wire) {
			w.silence(1, 960, 1)
			pass(patience + 2*silentStep)
		}, []int16{1, 0, 0}},
		"each moment of it once, whatever comes then": {func(_ *microphone, w *wire) {
			w.still(1, 960, 1)
			pass(patience + 3*silentStep)
			w.sendAt(2, 960*10, 2)
		}, []int16{1, 0, 0, 0, 0, 0, 0, 0, 0, 2}},
		"what comes later than that is heard all the same": {func(_ *microphone, w *wire) {
			w.still(1, 960, 1)
			pass(patience + 3*silentStep)
			w.sendAt(2, 960*2, 2)
			w.sendAt(3, 960*3, 3)
		}, []int16{1, 0, 0, 0, 2, 3}},
		"a second of it, and no more": {func(_ *microphone, w *wire) {
			w.still(1, 960, 1)
			pass(time.Minute)
		}, append([]int16{1}, make([]int16, 50)...)},
		"packets that are late in the middle of speech are no silence": {func(_ *microphone, w *wire) {
			w.still(1, 960, 1)
			w.send(2, 2)
			pass(time.Second / 2)
			w.sendAt(3, 960*3, 3)
		}, []int16{1, 2, 3}},
		"after a mute no silence passes": {func(m *microphone, w *wire) {
			w.still(1, 960, 1)
			synctest.Wait()
			m.mute(true)
			pass(time.Second)
			m.mute(false)
			pass(time.Second)
			w.sendAt(2, 960*20, 2)
		}, []int16{1, -1, 2}},
		"a mute in silence waits for what is under way": {func(m *microphone, w *wire) {
			w.still(1, 960, 1)
			pass(patience + silentStep/2)
			m.mute(true)
			pass(drain / 2)
			w.send(2, 2)
			pass(drain)
		}, []int16{1, 2, -1}},
		"a track that is gone falls silent": {func(_ *microphone, w *wire) {
			w.send(1, 1)
			synctest.Wait()
			close(w.packets)
		}, []int16{1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, w, heard := listening(t)
				c.does(m, w)
				if got := heard(); !slices.Equal(got, c.want) {
					t.Errorf("heard %v, want %v", got, c.want)
				}
			})
		})
	}
}

// Who spoke while somebody else had the floor is not heard from the middle on, but after a breath.
func TestNobodyIsHeardFromTheMiddle(t *testing.T) {
	loud, quiet := slices.Repeat([]int16{8000, -8000}, 160), make([]int16, 320)
	m := &microphone{refused: true}
	for range 40 {
		if m.mayBegin(loud) {
			t.Fatal("in the middle")
		}
	}
	for i := range 30 {
		if began := m.mayBegin(quiet); began != (i >= 24) {
			t.Fatalf("after %d ms of silence: %v", (i+1)*20, began)
		}
	}
	if !m.mayBegin(loud) {
		t.Error("not after a breath")
	}
}
