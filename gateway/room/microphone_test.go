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
	return &wire{packets: make(chan *rtp.Packet, 64), changed: make(chan struct{}, 8)}
}

func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	w.deadline = t
	w.mu.Unlock()
	w.changed <- struct{}{}
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

// send sends 20 ms of speech whose every sample is n.
func (w *wire) send(seq uint16, n int16) { w.sendAt(seq, uint32(seq)*960, n) }

func (w *wire) sendAt(seq uint16, at uint32, n int16) {
	w.packets <- &rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: seq, Timestamp: at}, Payload: []byte{byte(n)}}
}

// plain decodes a packet into 20 ms of its one byte; an empty one is none.
type plain struct{}

func (plain) Decode(packet []byte) ([]int16, error) {
	if packet[0] == 255 {
		return nil, errors.New("no Opus")
	}
	return slices.Repeat([]int16{int16(packet[0])}, 320), nil
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
