package e2e

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nhooyr.io/websocket"
)

const micRate = 16000

// spoken is a sentence in flite's voice, at micRate.
func spoken(t *testing.T, sentence string) []int16 {
	t.Helper()
	wav := filepath.Join(t.TempDir(), "spoken.wav")
	if out, err := exec.Command("flite", "-voice", "slt", "-t", sentence, "-o", wav).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	b, err := os.ReadFile(wav)
	if err != nil || len(b) < 44 || binary.LittleEndian.Uint32(b[24:]) != micRate {
		t.Fatalf("flite has written something else: %v", err)
	}
	samples := make([]int16, (len(b)-44)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(b[44+2*i:]))
	}
	return samples
}

// coughed is a burst of noise around a frequency, loud at once and gone at the end.
func coughed(long time.Duration, center float64) []int16 {
	r := rand.New(rand.NewPCG(1, uint64(long)))
	samples := make([]int16, int(long.Seconds()*micRate))
	var y1, y2 float64
	for i := range samples {
		y := r.Float64()*2 - 1 + 2*0.9*math.Cos(2*math.Pi*center/micRate)*y1 - 0.81*y2
		y1, y2 = y, y1
		samples[i] = int16(max(-32768, min(32767, y*6000*(1-float64(i)/float64(len(samples))))))
	}
	return samples
}

// person is a client with an open microphone in a quiet room, who says now and then what stands in line, and a player
// that stands still while the session listens.
type person struct {
	*dialogue
	say    chan []int16
	mu     sync.Mutex // the player is told by whoever reads, and asked by the microphone
	id     string
	got    float64 // ms of sound
	played float64
	heard  bool // the session listens
}

func (g *gateway) person(t *testing.T) *person {
	t.Helper()
	d := g.talk(t, `{"turns":"agent","turnDetection":"vad","audio":{"input":{"encoding":"pcm16","rate":16000,"framing":"binary"},"output":{"encoding":"pcm16","rate":16000,"framing":"json"}}}`)
	p := &person{dialogue: d, say: make(chan []int16, 8)}
	ctx, stop := context.WithCancel(d.ctx)
	var mic sync.WaitGroup
	mic.Go(func() { p.open(ctx) })
	t.Cleanup(func() { stop(); mic.Wait() })
	return p
}

// open is the microphone: 20 ms at a time, at the speed of sound.
func (p *person) open(ctx context.Context) {
	const piece = micRate / 50
	var line []int16
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case more := <-p.say:
			line = append(line, more...)
			continue
		case <-every.C:
		}
		pcm := make([]byte, 2*piece)
		for i := range min(piece, len(line)) {
			binary.LittleEndian.PutUint16(pcm[2*i:], uint16(line[i]))
		}
		line = line[min(piece, len(line)):]
		if p.ws.Write(ctx, websocket.MessageBinary, pcm) != nil {
			return
		}
		if ack := p.play(20); n%10 == 0 && ack != "" && p.ws.Write(ctx, websocket.MessageText, []byte(ack)) != nil {
			return
		}
	}
}

// play plays so many ms, and returns what to say of it.
func (p *person) play(ms float64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.heard {
		p.played = min(p.played+ms, p.got)
	}
	if p.id == "" {
		return ""
	}
	return fmt.Sprintf(`{"type":"playback.ack","payload":{"responseId":%q,"playedMs":%d}}`, p.id, int(p.played))
}

// read is until, with the player told.
func (p *person) read(fits func(event) bool) []event {
	p.Helper()
	return p.until(func(e event) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e.Type {
		case "session.state":
			p.heard = e.Payload.Value == "listening"
		case "response.audio.delta":
			var sound struct {
				Payload struct {
					ResponseID string
					Chunk      string
					StartMs    float64
				}
			}
			if err := json.Unmarshal([]byte(e.raw), &sound); err != nil {
				p.Error(err)
			}
			if p.id != sound.Payload.ResponseID {
				p.id, p.got, p.played = sound.Payload.ResponseID, 0, 0
			}
			if sound.Payload.StartMs != math.Floor(p.got) {
				p.Errorf("sound for %v ms where %v are due", sound.Payload.StartMs, p.got)
			}
			p.got += float64(base64.StdEncoding.DecodedLen(len(sound.Payload.Chunk))/2*2) / 2 * 1000 / micRate
		}
		return fits(e)
	})
}

func is(typ, value string) func(event) bool {
	return func(e event) bool { return e.Type == typ && (value == "" || e.Payload.Value == value) }
}

// a long answer: it is repeated.
const tale = "the harbour lies three miles to the north and the tide turns at noon so we sail when the bell rings"

// TestHandsFree: a question without a button is answered by voice; a cough over the answer stops nothing for good; words do.
func TestHandsFree(t *testing.T) {
	g := serve(t)
	p := g.person(t)
	p.say <- spoken(t, "what time is it")
	turn := p.read(is("session.state", "speaking"))
	if !strings.Contains(fmt.Sprint(turn), "what time is it") {
		t.Errorf("the question was heard as %v", turn)
	}
	p.read(is("session.state", "idle"))

	p.dialogue.say(tale)
	p.read(is("response.audio.delta", ""))
	for i, long := range []time.Duration{150 * time.Millisecond, 250 * time.Millisecond, 400 * time.Millisecond} {
		p.say <- append(coughed(long, 700+300*float64(i)), make([]int16, micRate)...)
	}
	for _, e := range p.read(is("session.state", "idle")) {
		if e.Type == "response.cancelled" || e.Type == "response.completed" && e.Payload.HeardText != "You said: "+tale {
			t.Errorf("after three coughs: %s", e.raw)
		}
	}

	p.dialogue.say(tale)
	p.read(is("response.audio.delta", ""))
	p.say <- spoken(t, "wait go back please")
	over := p.read(is("session.state", "thinking"))
	cancelled := ""
	for _, e := range over {
		if e.Type == "response.cancelled" {
			cancelled = e.raw
		}
		if cancelled != "" && e.Type == "response.audio.delta" {
			t.Errorf("after its end: %s", e.raw)
		}
	}
	if !strings.Contains(cancelled, `"barge_in"`) {
		t.Errorf("words over the answer: %v", over)
	}
	p.read(is("session.state", "idle"))
}

// TestSayHandsFree lets the gateway notice where a file begins and ends to speak.
func TestSayHandsFree(t *testing.T) {
	wav := filepath.Join(t.TempDir(), "question.wav")
	if out, err := exec.Command("flite", "-voice", "slt", "-t", "what time is it", "-o", wav).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	g := serve(t)
	if code, out, errs := run(t, nil, "say", "--hands-free", "--url", g.addr, wav); code != 0 || out != "you: what time is it\nagent: You said: what time is it\n" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestEnginesNameTheDetector: the one that make build puts beside the program is at work, and without its files the other is.
func TestEnginesNameTheDetector(t *testing.T) {
	if code, out, errs := run(t, nil, "engines"); code != 0 || !strings.Contains(out, "speech detection  silero        yes") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	g := serve(t, "--silero", filepath.Join(t.TempDir(), "nothing.onnx"))
	_, text := g.get("/api/engines")
	var r struct {
		Detectors []struct {
			Name, Why, Better string
			Available         bool
		}
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Detectors) != 2 {
		t.Fatalf("%v: %s", err, text)
	}
	silero, energy := r.Detectors[0], r.Detectors[1]
	if silero.Available || !strings.Contains(silero.Why, "--silero") || strings.Contains(text, "nothing.onnx") || !energy.Available || energy.Better == "" {
		t.Errorf("without a model: %s", text)
	}
}
