package session

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vela/protocol"
)

// slowLog is what eventLog does, written as it is meant.
type slowLog struct {
	events []Event
	last   uint64
}

func (l *slowLog) add(at time.Time, m protocol.Message) Event {
	l.last++
	e := Event{Seq: l.last, At: at.UnixMilli(), Message: m}
	l.events = append(l.events, e)
	for len(l.events) > maxEvents || l.bytes() > maxEventBytes && len(l.events) > 1 {
		l.events = l.events[1:]
	}
	return e
}

func (l *slowLog) bytes() int {
	n := 0
	for _, e := range l.events {
		n += weight(e.Message)
	}
	return n
}

func (l *slowLog) after(seq uint64) ([]Event, bool) {
	if seq > l.last || len(l.events) > 0 && seq+1 < l.events[0].Seq {
		return nil, false
	}
	var events []Event
	for _, e := range l.events {
		if e.Seq > seq {
			events = append(events, e)
		}
	}
	return events, true
}

// The log is run beside the slow one: with few events, more than it keeps, and more bytes than it keeps.
func TestEventLogAgainstASlowOne(t *testing.T) {
	for _, c := range []struct {
		name   string
		events int
		text   func(*rand.Rand) int // how long each text is
	}{
		{"few", 50, func(r *rand.Rand) int { return r.IntN(100) }},
		{"one more than the first ring", 17, func(*rand.Rand) int { return 1 }},
		{"as many as it keeps", maxEvents, func(*rand.Rand) int { return 0 }},
		{"one more than it keeps", maxEvents + 1, func(*rand.Rand) int { return 0 }},
		{"three times as many", 3*maxEvents + 7, func(r *rand.Rand) int { return r.IntN(20) }},
		{"too many bytes", 600, func(r *rand.Rand) int { return r.IntN(1 << 17) }},
		{"each too big", 5, func(*rand.Rand) int { return maxEventBytes }},
		{"small ones after one too big", 40, func(r *rand.Rand) int { return r.IntN(2) * r.IntN(2) * r.IntN(2) * maxEventBytes }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var l eventLog
			slow := slowLog{}
			for i := range c.events {
				at := time.UnixMilli(int64(i))
				m := anyEvent(r, c.text(r))
				if got, want := l.add(at, m), slow.add(at, m); got != want {
					t.Fatalf("event %d is number %d at %d, want number %d at %d", i+1, got.Seq, got.At, want.Seq, want.At)
				}
				if i < 40 || i%97 == 0 || i == c.events-1 {
					sameLog(t, r, &l, &slow)
				}
			}
		})
	}
}

func sameLog(t *testing.T, r *rand.Rand, l *eventLog, slow *slowLog) {
	t.Helper()
	if l.n != len(slow.events) || l.bytes != slow.bytes() {
		t.Fatalf("it keeps %d events of %d bytes, want %d of %d", l.n, l.bytes, len(slow.events), slow.bytes())
	}
	if l.n > maxEvents || l.bytes > maxEventBytes && l.n > 1 || len(l.ring) > maxEvents {
		t.Fatalf("it keeps %d events of %d bytes in %d places", l.n, l.bytes, len(l.ring))
	}
	asked := []uint64{0, 1, slow.last - 1, slow.last, slow.last + 1, ^uint64(0), r.Uint64N(slow.last + 1)}
	if len(slow.events) > 0 {
		oldest := slow.events[0].Seq
		asked = append(asked, oldest-2, oldest-1, oldest)
	}
	for _, seq := range asked {
		got, ok := l.after(seq)
		want, wantOK := slow.after(seq)
		if ok != wantOK || !slices.Equal(got, want) {
			t.Fatalf("after %d of %d: %d events and %t, want %d and %t", seq, slow.last, len(got), ok, len(want), wantOK)
		}
	}
}

// anyEvent has a text of the given length if its kind has one.
func anyEvent(r *rand.Rand, length int) protocol.Message {
	text := strings.Repeat("x", length)
	switch r.IntN(6) {
	case 0:
		return protocol.TranscriptPartial{Text: text}
	case 1:
		return protocol.TranscriptFinal{Text: text}
	case 2:
		return protocol.Error{Code: protocol.CodeInternal, Message: text}
	case 3:
		return protocol.SessionState{Value: protocol.Idle}
	}
	return protocol.ResponseTextDelta{Text: text}
}

func TestAnEmptyLogReachesBackToItsStart(t *testing.T) {
	var l eventLog
	if events, ok := l.after(0); !ok || len(events) != 0 {
		t.Errorf("after 0: %v, %t", events, ok)
	}
	if events, ok := l.after(1); ok {
		t.Errorf("after 1: %v, although nothing has happened yet", events)
	}
	if len(l.ring) != 0 {
		t.Errorf("it holds %d places for nothing", len(l.ring))
	}
}

// What is dropped is let go of, and a short conversation takes little room.
func TestEventLogLetsGo(t *testing.T) {
	var l eventLog
	for range 10 {
		l.add(time.Time{}, protocol.ResponseTextDelta{Text: strings.Repeat("x", maxEventBytes)})
	}
	if len(l.ring) > 16 {
		t.Errorf("ten events take %d places", len(l.ring))
	}
	held := 0
	for _, e := range l.ring {
		if e.Message != nil {
			held++
		}
	}
	if held != 1 || l.n != 1 {
		t.Errorf("%d texts are held for %d events", held, l.n)
	}
}

// Every event of the contract weighs at least its texts.
func TestWeightCountsTexts(t *testing.T) {
	const text = "some words that are not there by chance"
	for _, m := range []protocol.Message{
		protocol.TranscriptPartial{Text: text},
		protocol.TranscriptFinal{Text: text},
		protocol.ResponseTextDelta{Text: text},
		protocol.Error{Message: text},
	} {
		if got := weight(m); got < len(text) {
			t.Errorf("%T weighs %d", m, got)
		}
	}
	for _, e := range protocol.Events() {
		if got := weight(e.Zero()); got <= 0 {
			t.Errorf("%s weighs %d", e.Type, got)
		}
	}
}

// Sound that was played leaves room for others, and the log is bounded all the same: it gives exactly what follows, or none.
func TestALogForgetsSoundThatWasPlayed(t *testing.T) {
	const sound = 2560
	l := eventLog{}
	add := func() {
		l.add(time.Time{}, protocol.ResponseAudioDelta{ResponseID: "r1", Chunk: strings.Repeat("x", sound), Text: "a word"})
	}
	for range maxAllEvents - 10 {
		add()
		l.spend(l.last - min(10, l.last-1)) // 400 ms behind
		l.spend(l.last + 1)                 // which there is not
	}
	if all, ok := l.after(0); !ok || len(all) != maxAllEvents-10 || l.n-l.spent > 11 || l.bytes > maxEventBytes/2 {
		t.Fatalf("%d of %d events, %t, %d of them were played, %d bytes", len(all), maxAllEvents-10, ok, l.spent, l.bytes)
	}
	for range 100 {
		add()
		l.spend(1) // which has been dropped, at last
	}
	if _, ok := l.after(0); ok || l.n != maxAllEvents {
		t.Errorf("%d events are kept", l.n)
	}
	for range 3 * maxEvents { // which weigh more than is kept
		add()
	}
	bytes, spent := 0, 0
	all, ok := l.after(l.last - uint64(l.n))
	for i, e := range all {
		bytes += weight(e.Message)
		if isSpent(e.Message) {
			spent++
		}
		if i > 0 && e.Seq != all[i-1].Seq+1 {
			t.Fatalf("%d follows %d", e.Seq, all[i-1].Seq)
		}
	}
	if !ok || len(all) != l.n || bytes != l.bytes || spent != l.spent || bytes > maxEventBytes {
		t.Errorf("%d events of %d bytes, %d of them were played; the log counts %d, %d, %d", len(all), bytes, spent, l.n, l.bytes, l.spent)
	}
	for range 2 * maxEvents {
		l.add(time.Time{}, protocol.SessionState{})
	}
	if l.n != maxEvents || l.spent != 0 {
		t.Errorf("%d events are kept, %d of them were played", l.n, l.spent)
	}
}
