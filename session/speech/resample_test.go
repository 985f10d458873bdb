package speech

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// pairs are rates that meet in practice, and some that never will: coprime ones, and the ends of what is allowed.
var pairs = [][2]int{
	{48000, 16000}, {44100, 16000}, {24000, 16000}, {22050, 16000}, {8000, 16000}, {11025, 16000}, {32000, 16000}, {96000, 16000},
	{16000, 48000}, {16000, 44100}, {16000, 24000}, {16000, 8000}, {24000, 48000},
	{192000, 8000}, {8000, 192000}, {44101, 16001}, {15999, 48017}, {16000, 16000},
}

func each(t *testing.T, test func(t *testing.T, in, out int)) {
	for _, p := range pairs {
		t.Run(fmt.Sprintf("%d to %d", p[0], p[1]), func(t *testing.T) { test(t, p[0], p[1]) })
	}
}

// tone is n samples of a sine.
func tone(freq float64, rate, n int, amplitude float64) []int16 {
	samples := make([]int16, n)
	for i := range samples {
		samples[i] = int16(math.Round(amplitude * math.Sin(2*math.Pi*freq*float64(i)/float64(rate))))
	}
	return samples
}

// noise is n samples of white noise, the same for the same seed.
func noise(seed uint64, n int) []int16 {
	random := rand.New(rand.NewPCG(seed, 1))
	samples := make([]int16, n)
	for i := range samples {
		samples[i] = int16(random.IntN(1<<16) - 1<<15)
	}
	return samples
}

func resample(t *testing.T, samples []int16, in, out int) []int16 {
	t.Helper()
	got, err := Resample(samples, in, out)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// middle leaves out the edges, where the tone begins and ends.
func middle(samples []int16) []int16 { return samples[len(samples)/4 : 3*len(samples)/4] }

func TestResampleRejectsAliases(t *testing.T) {
	each(t, func(t *testing.T, in, out int) {
		worst := Quietest
		for freq := float64(out) / 2; freq < float64(in)/2; freq += float64(in) / 97 {
			got := resample(t, tone(freq, in, in/8, 32767), in, out)
			worst = max(worst, Level(middle(got))+3.01) // compared with the sine that went in
		}
		if worst > -80 {
			t.Errorf("an alias at %.1f dB, want at most -80", worst)
		}
	})
}

func TestResampleKeepsTonesWhereTheyAre(t *testing.T) {
	each(t, func(t *testing.T, in, out int) {
		for _, share := range []float64{0.01, 0.1, 0.25, 0.36} {
			freq := share * float64(min(in, out))
			got := resample(t, tone(freq, in, in/8, 30000), in, out)
			want := tone(freq, out, len(got), 30000) // the same phase: the delay does not shift it
			off := make([]int16, len(got))
			for i := range off {
				off[i] = got[i] - want[i]
			}
			if level := Level(middle(off)) - Level(middle(want)); level > -74 {
				t.Errorf("%.0f Hz: error and images at %.1f dB, want at most -74", freq, level)
			}
		}
	})
}

func TestResampleIsTheSameForAnySplit(t *testing.T) {
	each(t, func(t *testing.T, in, out int) {
		samples := noise(3, in/4)
		want := resample(t, samples, in, out)
		r, _ := NewResampler(in, out)
		for seed := range uint64(4) { // one after the other on the same resampler
			random := rand.New(rand.NewPCG(seed, 2))
			var got []int16
			for rest := samples; len(rest) > 0; {
				n := min(len(rest), random.IntN(1+in/50*int(seed)))
				got = r.Process(got, rest[:n])
				rest = rest[n:]
				if n == 0 { // a single sample, and now and then nothing at all
					got = r.Process(got, rest[:1])
					rest = rest[1:]
				}
			}
			if got = r.Flush(got); !slices.Equal(got, want) {
				t.Fatalf("split with seed %d: %d samples differ from those of one piece, %d", seed, len(got), len(want))
			}
		}
	})
}

func TestResampleLength(t *testing.T) {
	each(t, func(t *testing.T, in, out int) {
		for _, n := range []int{0, 1, 2, 3, 7, 10, 99, 320, 1023, 1024, 1025, 4410, 7777} {
			want := int(math.Floor(float64(n)*float64(out)/float64(in) + 0.5))
			if got := len(resample(t, noise(1, n), in, out)); got != want {
				t.Errorf("%d samples became %d, want %d", n, got, want)
			}
		}
	})
}

func TestResampleHoldsBackOneMillisecond(t *testing.T) {
	r, _ := NewResampler(48000, Rate)
	got := r.Process(nil, make([]int16, 48000))
	if held := Duration(Rate-len(got), Rate); held > 1300*time.Microsecond {
		t.Errorf("%v held back", held)
	}
}

func TestResampleClipsRatherThanWraps(t *testing.T) {
	square := make([]int16, 4800)
	for i := range square {
		square[i] = math.MaxInt16
		if i/60%2 == 1 {
			square[i] = math.MinInt16
		}
	}
	for i, s := range resample(t, square, 48000, Rate) {
		inside := i % 20
		if inside > 3 && inside < 17 && (s > 0) != (i/20%2 == 0) {
			t.Fatalf("sample %d is %d", i, s)
		}
	}
}

func TestResampleKeepsALevel(t *testing.T) {
	constant := slices.Repeat([]int16{20000}, 8000)
	each(t, func(t *testing.T, in, out int) {
		for i, s := range middle(resample(t, constant, in, out)) {
			if s < 19999 || s > 20001 {
				t.Fatalf("sample %d of a constant 20000 is %d", i, s)
			}
		}
	})
}

func TestResamplerRefusesRates(t *testing.T) {
	for _, p := range [][2]int{{0, 16000}, {16000, 0}, {7999, 16000}, {16000, 192001}, {-1, -1}} {
		if _, err := NewResampler(p[0], p[1]); err == nil {
			t.Errorf("from %d to %d Hz: no error", p[0], p[1])
		}
	}
}

func TestResamplerAllocatesNothing(t *testing.T) {
	each(t, func(t *testing.T, in, out int) {
		r, _ := NewResampler(in, out)
		src := noise(5, in/50)
		dst := make([]int16, 0, out/10)
		if n := testing.AllocsPerRun(50, func() { dst = r.Process(dst[:0], src) }); n != 0 {
			t.Errorf("%v allocations a chunk", n)
		}
	})
}

func BenchmarkResample20ms(b *testing.B) {
	for _, p := range [][2]int{{48000, 16000}, {44100, 16000}, {24000, 16000}, {16000, 48000}, {44101, 16001}} {
		b.Run(fmt.Sprintf("%d to %d", p[0], p[1]), func(b *testing.B) {
			r, _ := NewResampler(p[0], p[1])
			src := noise(5, p[0]/50)
			var dst []int16
			b.ReportAllocs()
			for b.Loop() {
				dst = r.Process(dst[:0], src)
			}
		})
	}
}

func ExampleResampler() {
	r, err := NewResampler(48000, Rate)
	if err != nil {
		panic(err)
	}
	var out []int16
	for range 50 { // a second, in pieces of 20 ms
		out = r.Process(out, make([]int16, 960))
	}
	out = r.Flush(out)
	fmt.Println(Duration(len(out), Rate))
	// Output: 1s
}
