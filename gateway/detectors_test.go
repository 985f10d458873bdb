package gateway

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/session/silero"
	"vela/session/speech"
)

// beside is what make build puts beside the program.
var beside = silero.Files{Library: "../bin/libonnxruntime.so", Model: "../bin/silero_vad.onnx"}

// said is a sentence in one of flite's voices, with a second of silence before it and two behind it, and where in it there is
// sound.
func said(t *testing.T, voice, sentence string) (samples []int16, from, to time.Duration) {
	t.Helper()
	wav := filepath.Join(t.TempDir(), "said.wav")
	if out, err := exec.Command("flite", "-voice", voice, "-t", sentence, "-o", wav).CombinedOutput(); err != nil {
		t.Fatalf("flite: %v\n%s", err, out)
	}
	f, err := os.Open(wav)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	clip, err := speech.ReadWAV(f, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	voiced, err := speech.Resample(clip.Samples, clip.Rate, speech.Rate)
	if err != nil {
		t.Fatal(err)
	}
	samples = append(make([]int16, speech.Rate), voiced...)
	samples = append(samples, make([]int16, 2*speech.Rate)...)
	for at := 0; at+160 <= len(samples); at += 160 {
		if speech.Level(samples[at:at+160]) > -40 {
			if to = speech.Duration(at+160, speech.Rate); from == 0 {
				from = speech.Duration(at, speech.Rate)
			}
		}
	}
	return samples, from, to
}

// noise is so much of a signal from -1 to 1 at a level in dBFS.
func noise(long time.Duration, level float64, at func(i int) float64) []int16 {
	x, sum := make([]float64, speech.Count(long, speech.Rate)), 0.0
	for i := range x {
		x[i] = at(i)
		sum += x[i] * x[i]
	}
	scale := math.Pow(10, level/20) / math.Sqrt(sum/float64(len(x))) * (1 << 15)
	samples := make([]int16, len(x))
	for i := range x {
		samples[i] = int16(max(-32768, min(32767, x[i]*scale)))
	}
	return append(make([]int16, speech.Rate), append(samples, make([]int16, speech.Rate)...)...)
}

func white() func(int) float64 {
	r := rand.New(rand.NewPCG(1, 1))
	return func(int) float64 { return r.Float64()*2 - 1 }
}

// around is noise around a frequency that is loud at once and gone after so long: a cough.
func around(center float64, long time.Duration) func(int) float64 {
	hiss, n := white(), float64(speech.Count(long, speech.Rate))
	var y1, y2 float64
	return func(i int) float64 {
		y := hiss(i) + 2*0.9*math.Cos(2*math.Pi*center/speech.Rate)*y1 - 0.81*y2
		y1, y2 = y, y1
		return y * (1 - float64(i)/n)
	}
}

// nothings are what is no speech.
func nothings() map[string][]int16 {
	hertz := func(f float64) func(int) float64 {
		return func(i int) float64 { return math.Sin(2 * math.Pi * f * float64(i) / speech.Rate) }
	}
	all := map[string][]int16{
		"silence": make([]int16, 10*speech.Rate),
		"a tone":  noise(5*time.Second, -12, hertz(440)),
		"mains":   noise(5*time.Second, -30, hertz(50)),
		"clicks": noise(5*time.Second, -40, func(i int) float64 {
			if i%6400 < 50 {
				return 1
			}
			return 1e-6
		}),
	}
	for _, level := range []float64{-20, -30, -45} {
		all[fmt.Sprintf("noise at %v dB", level)] = noise(10*time.Second, level, white())
	}
	for _, long := range []time.Duration{150 * time.Millisecond, 250 * time.Millisecond, 400 * time.Millisecond} {
		for _, level := range []float64{-6, -14, -24} {
			all[fmt.Sprintf("a cough of %v at %v dB", long, level)] = noise(long, level, around(900, long))
		}
	}
	return all
}

// points are where speech begins and ends, as sessions have it that do not say.
func points(d session.VoiceDetector, samples []int16) (begins, ends []time.Duration) {
	e := speech.NewEndpointer(0.5, 200*time.Millisecond, 600*time.Millisecond)
	for at := speech.FrameSamples; at <= len(samples); at += speech.FrameSamples {
		switch e.Add(d.Speech(samples[at-speech.FrameSamples : at])) {
		case speech.Begins:
			begins = append(begins, speech.Duration(at, speech.Rate))
		case speech.Ends:
			ends = append(ends, speech.Duration(at, speech.Rate))
		}
	}
	return begins, ends
}

// TestDetectors holds what a session hears with to real voices, and to what is none. Times are of the sound, not of the machine:
// from the first sound of a sentence to the notice of it, and from the last.
func TestDetectors(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		files         silero.Files
		within, after time.Duration
	}{
		"silero": {beside, 400 * time.Millisecond, 800 * time.Millisecond},
		"energy": {silero.Files{Library: "nothing"}, 650 * time.Millisecond, 800 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDetectors(c.files, protocol.VAD{}, quiet)
			if r := firstThere(d.report()); r.Name != name {
				t.Fatalf("at work is %+v: run make build", r)
			}
			for _, voice := range []string{"slt", "rms", "awb", "kal16"} {
				for _, sentence := range []string{"what time is it", "no wait please", "yes"} {
					samples, from, to := said(t, voice, sentence)
					begins, ends := points(d.stream(), samples)
					if len(begins) != 1 || len(ends) != 1 {
						t.Errorf("%s, %q: begins %v, ends %v", voice, sentence, begins, ends)
						continue
					}
					if begins[0]-from > c.within || ends[0]-to > c.after {
						t.Errorf("%s, %q: noticed after %v, and its end after %v", voice, sentence, begins[0]-from, ends[0]-to)
					}
				}
			}
			for what, samples := range nothings() {
				if begins, _ := points(d.stream(), samples); len(begins) > 0 {
					t.Errorf("%s is speech after %v", what, begins)
				}
			}
		})
	}
}

type failing struct{}

func (failing) Speech([]int16) (float32, error) { return 1, errEar }

// A detector that fails in the middle of a stream has another one in its place.
func TestADetectorThatFails(t *testing.T) {
	stream := &detector{best: failing{}, spare: speech.NewEnergyDetector(), log: slog.New(slog.DiscardHandler)}
	samples, _, _ := said(t, "slt", "what time is it")
	if begins, _ := points(stream, samples); len(begins) != 1 || stream.best != nil {
		t.Errorf("after that speech begins at %v", begins)
	}
}
