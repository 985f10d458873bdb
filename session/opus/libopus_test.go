//go:build cgo && opus

package opus

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vela/session/speech"
)

func newCodec(t testing.TB) speech.Codec {
	t.Helper()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ends(t testing.TB, in, out int) (speech.Encoder, speech.Decoder) {
	t.Helper()
	e, err := newCodec(t).Encoder(in)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newCodec(t).Decoder(out)
	if err != nil {
		t.Fatal(err)
	}
	return e, d
}

// tone is silence, then 300 Hz that begins at from, and silence again from to on.
func tone(length, from, to time.Duration, rate int) []int16 {
	samples := make([]int16, speech.Count(length, rate))
	for i := speech.Count(from, rate); i < speech.Count(to, rate); i++ {
		samples[i] = int16(8000 * math.Sin(2*math.Pi*300*float64(i)/float64(rate)))
	}
	return samples
}

// through is what comes out of a stream, packet by packet.
func through(t *testing.T, e speech.Encoder, d speech.Decoder, samples []int16, rate int) (out []int16) {
	t.Helper()
	for piece := range slices.Chunk(samples, speech.Count(speech.PacketLength, rate)) {
		packet, err := e.Encode(piece)
		if err != nil {
			t.Fatal(err)
		}
		sound, err := d.Decode(packet)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sound...)
	}
	return out
}

// What is encoded at any rate comes out at any rate: as long, as loud, and later by no more than the codec's delay.
func TestThereAndBack(t *testing.T) {
	const length, from, to = 800 * time.Millisecond, 200 * time.Millisecond, 600 * time.Millisecond
	for _, in := range speech.CodecRates {
		for _, out := range speech.CodecRates {
			t.Run(fmt.Sprint(in, " to ", out), func(t *testing.T) {
				e, d := ends(t, in, out)
				got := through(t, e, d, tone(length, from, to, in), in)
				if len(got) != speech.Count(length, out) {
					t.Fatalf("%v came out of %v", speech.Duration(len(got), out), length)
				}
				middle := got[speech.Count(300*time.Millisecond, out):speech.Count(500*time.Millisecond, out)]
				if level, want := speech.Level(middle), speech.Level(tone(length, 0, length, in)); math.Abs(level-want) > 2 {
					t.Errorf("the tone has %.1f dBFS, want %.1f", level, want)
				}
				loud := func(s int16) bool { return s > 2000 || s < -2000 }
				begins := speech.Duration(slices.IndexFunc(got, loud), out)
				if late := begins - from; late < -5*time.Millisecond || late > speech.CodecDelay+5*time.Millisecond {
					t.Errorf("the tone begins %v late", late)
				}
				slices.Reverse(got)
				stops := length - speech.Duration(slices.IndexFunc(got, loud), out)
				if late := stops - to; late < speech.CodecDelay-5*time.Millisecond || late > speech.CodecDelay+10*time.Millisecond {
					t.Errorf("the tone ends %v late, want %v", late, speech.CodecDelay)
				}
			})
		}
	}
}

// The same sound makes the same packets: a replay of a session compares them.
func TestEncodingIsDeterministic(t *testing.T) {
	samples := tone(400*time.Millisecond, 0, 300*time.Millisecond, 24000)
	one, _ := ends(t, 24000, 24000)
	other, _ := ends(t, 24000, 24000)
	for piece := range slices.Chunk(samples, 960) {
		a, errA := one.Encode(piece)
		b, errB := other.Encode(piece)
		if errA != nil || errB != nil || !slices.Equal(a, b) {
			t.Fatalf("%x, %v\n%x, %v", a, errA, b, errB)
		}
	}
}

// A decoder that has missed packets is right again within 200 ms.
func TestLostPacketsAreGotOver(t *testing.T) {
	const rate = 16000
	e, d := ends(t, rate, rate)
	samples := tone(time.Second, 0, time.Second, rate)
	var got []int16
	for i, piece := range slices.Collect(slices.Chunk(samples, speech.Count(speech.PacketLength, rate))) {
		packet, err := e.Encode(piece)
		if err != nil {
			t.Fatal(err)
		}
		if i >= 5 && i < 15 {
			continue
		}
		sound, err := d.Decode(packet)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, sound...)
	}
	end := got[len(got)-speech.Count(200*time.Millisecond, rate):]
	if level, want := speech.Level(end), speech.Level(samples); math.Abs(level-want) > 1 {
		t.Errorf("after a loss the tone has %.1f dBFS, want %.1f", level, want)
	}
}

func TestWhatIsNoPacket(t *testing.T) {
	_, d := ends(t, 16000, 16000)
	for name, packet := range map[string][]byte{
		"nothing":                  {},
		"two frames, odd":          {1, 0},             // R3
		"a frame that is missing":  {2, 200},           // R4
		"no count of frames":       {3},                // R6
		"no frames":                {3, 0},             // R5: at least one
		"140 ms":                   {0x0b, 7, 0, 0, 0}, // seven frames of 20 ms
		"a frame of 1,276 bytes":   make([]byte, 1277), // R2
		"padding without an end":   {3, 0x41, 255, 255},
		"more padding than packet": {3, 0x41, 10, 0},
	} {
		if sound, err := d.Decode(packet); !errors.Is(err, ErrPacket) || sound != nil {
			t.Errorf("%s: %d samples, %v", name, len(sound), err)
		}
	}
	e, _ := ends(t, 16000, 16000)
	good, err := e.Encode(make([]int16, 640))
	if err != nil {
		t.Fatal(err)
	}
	if sound, err := d.Decode(good); err != nil || len(sound) != 640 {
		t.Errorf("after all that, a good packet: %d samples, %v", len(sound), err)
	}
}

func TestWhatCannotBe(t *testing.T) {
	for _, rate := range []int{0, -1, 44100, 96000} {
		if _, err := newCodec(t).Encoder(rate); err == nil {
			t.Errorf("there is an encoder for %d Hz", rate)
		}
		if _, err := newCodec(t).Decoder(rate); err == nil {
			t.Errorf("there is a decoder for %d Hz", rate)
		}
	}
	e, _ := ends(t, 16000, 16000)
	for _, n := range []int{0, 1, 320, 639, 641, 1280} {
		if packet, err := e.Encode(make([]int16, n)); err == nil {
			t.Errorf("%d samples are a packet of %d bytes", n, len(packet))
		}
	}
}

// The loudest noise fits into what a packet may have.
func TestTheLargestPacket(t *testing.T) {
	for _, rate := range speech.CodecRates {
		e, d := ends(t, rate, rate)
		r := rand.New(rand.NewPCG(1, 2))
		noise := make([]int16, speech.Count(time.Second, rate))
		for i := range noise {
			noise[i] = int16(r.Uint32())
		}
		through(t, e, d, noise, rate)
	}
}

// FuzzDecode decodes anything, after a good packet and before one: at most 120 ms come of it, and the good ones are heard.
func FuzzDecode(f *testing.F) {
	e, _ := ends(f, 16000, 16000)
	good, err := e.Encode(tone(speech.PacketLength, 0, speech.PacketLength, 16000))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{{}, good, good[:len(good)/2], {3, 0x41, 255, 255}, {0x0b, 7, 0, 0, 0}, make([]byte, 1277), {0xff, 0x30}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		_, d := ends(t, 16000, 16000)
		for i, p := range [][]byte{good, packet, good} {
			sound, err := d.Decode(p)
			if most := speech.Count(longest, 16000); len(sound) > most || (err == nil) != (len(sound) > 0) {
				t.Fatalf("%d samples, %v", len(sound), err)
			}
			if i != 1 && len(sound) != 640 {
				t.Fatalf("a good packet: %d samples, %v", len(sound), err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e, _ := ends(b, 24000, 24000)
	sound := tone(speech.PacketLength, 0, speech.PacketLength, 24000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Encode(sound); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	e, d := ends(b, 16000, 16000)
	packet, err := e.Encode(tone(speech.PacketLength, 0, speech.PacketLength, 16000))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(packet); err != nil {
			b.Fatal(err)
		}
	}
}
