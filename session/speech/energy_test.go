package speech

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// sound is so much of a signal, whose samples are from -1 to 1, at a level in dBFS.
func sound(long time.Duration, level float64, at func(i int) float64) []int16 {
	x := make([]float64, Count(long, Rate))
	sum := 0.0
	for i := range x {
		x[i] = at(i)
		sum += x[i] * x[i]
	}
	if sum == 0 {
		return make([]int16, len(x))
	}
	scale := math.Pow(10, level/20) / math.Sqrt(sum/float64(len(x))) * (1 << 15)
	samples := make([]int16, len(x))
	for i := range x {
		samples[i] = int16(max(-32768, min(32767, x[i]*scale)))
	}
	return samples
}

func hertz(f float64) func(int) float64 {
	return func(i int) float64 { return math.Sin(2 * math.Pi * f * float64(i) / Rate) }
}

// vowel is a voice of that pitch: pulses, and a throat that rings at 700 and 1,200 Hz.
func vowel(pitch float64) func(int) float64 {
	return func(i int) float64 {
		since := math.Mod(float64(i)/Rate, 1/pitch)
		return math.Exp(-since*400)*math.Sin(2*math.Pi*700*since) + 0.5*math.Exp(-since*500)*math.Sin(2*math.Pi*1200*since)
	}
}

func hiss(seed uint64) func(int) float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(int) float64 { return r.Float64()*2 - 1 }
}

// brown is noise that is deep, as in a car.
func brown(seed uint64) func(int) float64 {
	at, white := 0.0, hiss(seed)
	return func(i int) float64 { at = at*0.995 + white(i); return at }
}

// burst is a cough without a voice: noise around a frequency, loud at once and gone at the end.
func burst(center float64, long time.Duration) func(int) float64 {
	white, n := hiss(7), float64(Count(long, Rate))
	var y1, y2 float64
	return func(i int) float64 {
		y := white(i) + 2*0.9*math.Cos(2*math.Pi*center/Rate)*y1 - 0.81*y2
		y1, y2 = y, y1
		return y * (1 - float64(i)/n)
	}
}

// begins says whether speech begins in what follows a second of silence.
func begins(samples []int16) bool {
	d, e := NewEnergyDetector(), NewEndpointer(0.5, 200*time.Millisecond, 600*time.Millisecond)
	all := append(make([]int16, Rate), samples...)
	for ; len(all) >= FrameSamples; all = all[FrameSamples:] {
		if e.Add(d.Speech(all[:FrameSamples])) == Begins {
			return true
		}
	}
	return false
}

func TestEnergyDetector(t *testing.T) {
	const long = 5 * time.Second
	for name, c := range map[string]struct {
		samples []int16
		want    bool
	}{
		"silence":           {make([]int16, 5*Rate), false},
		"hiss at -20 dB":    {sound(long, -20, hiss(1)), false},
		"hiss at -40 dB":    {sound(long, -40, hiss(1)), false},
		"a car at -20 dB":   {sound(long, -20, brown(2)), false},
		"a tone":            {sound(long, -12, hertz(440)), false},
		"a high tone":       {sound(long, -12, hertz(1000)), false},
		"mains":             {sound(long, -20, hertz(50)), false},
		"clicks":            {sound(long, -30, func(i int) float64 { return float64(i % 6400 / 6380) }), false},
		"a short burst":     {sound(150*time.Millisecond, -6, burst(900, 150*time.Millisecond)), false},
		"a burst":           {sound(400*time.Millisecond, -14, burst(900, 400*time.Millisecond)), false},
		"a burst of hiss":   {sound(400*time.Millisecond, -6, hiss(3)), false},
		"a deep voice":      {sound(time.Second, -20, vowel(90)), true},
		"a voice":           {sound(time.Second, -20, vowel(150)), true},
		"a high voice":      {sound(time.Second, -20, vowel(300)), true},
		"a low voice":       {sound(time.Second, -45, vowel(150)), true},
		"one too low":       {sound(time.Second, -65, vowel(150)), false},
		"a very short word": {sound(100*time.Millisecond, -20, vowel(150)), false},
	} {
		if got := begins(c.samples); got != c.want {
			t.Errorf("%s is speech: %t", name, got)
		}
	}
}

// The noise is learnt: a voice must be above it, and what is loud without a pitch ends speech when it has been learnt.
func TestTheNoiseIsLearnt(t *testing.T) {
	d, e := NewEnergyDetector(), NewEndpointer(0.5, 200*time.Millisecond, 600*time.Millisecond)
	feed := func(samples []int16) (points []Endpoint) {
		for ; len(samples) >= FrameSamples; samples = samples[FrameSamples:] {
			if p := e.Add(d.Speech(samples[:FrameSamples])); p != Same {
				points = append(points, p)
			}
		}
		return points
	}
	noise := sound(20*time.Second, -35, hiss(4))
	if got := feed(noise); len(got) > 0 {
		t.Errorf("noise is speech: %v", got)
	}
	voice := sound(time.Second, -20, vowel(150))
	mixed := make([]int16, len(noise))
	for i := range mixed {
		mixed[i] = noise[i]
		if i < len(voice) {
			mixed[i] += voice[i]
		}
	}
	if got := feed(mixed); len(got) != 2 || got[0] != Begins || got[1] != Ends {
		t.Errorf("a voice within noise is %v", got)
	}
	feed(voice)
	if got := feed(sound(10*time.Second, -25, hiss(5))); len(got) != 1 || got[0] != Ends {
		t.Errorf("a fan that starts while somebody speaks is %v", got)
	}
}

func BenchmarkEnergyDetector(b *testing.B) {
	d, frame := NewEnergyDetector(), sound(32*time.Millisecond, -20, vowel(150))
	b.ReportAllocs()
	for b.Loop() {
		d.Speech(frame)
	}
}
