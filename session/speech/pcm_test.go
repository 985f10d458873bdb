package speech

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestSamplesAndBytes(t *testing.T) {
	pcm := []byte{0x00, 0x00, 0x01, 0x00, 0xFF, 0xFF, 0xFF, 0x7F, 0x00, 0x80}
	samples := []int16{0, 1, -1, math.MaxInt16, math.MinInt16}
	if got := Samples(pcm); !slices.Equal(got, samples) {
		t.Errorf("Samples = %v", got)
	}
	if got := Bytes(samples); !slices.Equal(got, pcm) {
		t.Errorf("Bytes = %v", got)
	}
	if got := Samples(pcm[:3]); !slices.Equal(got, samples[:1]) {
		t.Errorf("Samples of an odd length = %v, want the half sample left out", got)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	samples, pcm := make([]int16, 0, 320), make([]byte, 640)
	if n := testing.AllocsPerRun(10, func() {
		samples = AppendSamples(samples[:0], pcm)
		pcm = AppendBytes(pcm[:0], samples)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		samples, rate int
		want          time.Duration
	}{
		{320, Rate, 20 * time.Millisecond},
		{1, Rate, 62500 * time.Nanosecond},
		{44100 * 3600 * 24, 44100, 24 * time.Hour},
		{5, 0, 0},
	} {
		if got := Duration(c.samples, c.rate); got != c.want {
			t.Errorf("%d samples at %d Hz last %v, want %v", c.samples, c.rate, got, c.want)
		}
		if got := BytesDuration(c.samples*2, c.rate); got != c.want {
			t.Errorf("%d bytes at %d Hz last %v, want %v", c.samples*2, c.rate, got, c.want)
		}
		if got := Count(c.want, c.rate); c.rate > 0 && got != c.samples {
			t.Errorf("%v at %d Hz are %d samples, want %d", c.want, c.rate, got, c.samples)
		}
	}
}

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []int16
		want    float64
	}{
		{"nothing", nil, Quietest},
		{"silence", make([]int16, 100), Quietest},
		{"full-scale square", []int16{math.MinInt16, math.MinInt16}, 0},
		{"full-scale sine", tone(1000, Rate, Rate, 32767), -3.01},
		{"half of it", tone(1000, Rate, Rate, 16384), -9.03},
		{"one step in a second", append(make([]int16, Rate), 1), Quietest},
	} {
		if got := Level(c.samples); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s: %.2f dBFS, want %.2f", c.name, got, c.want)
		}
	}
}
