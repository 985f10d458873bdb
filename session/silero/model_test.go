//go:build cgo && linux && (amd64 || arm64)

package silero

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"vela/session/speech"
)

// What the Makefile puts beside the program. Without it these tests fail: what is not tried is not known to work.
var files = Files{Library: "../../bin/libonnxruntime.so", Model: "../../bin/silero_vad.onnx"}

var load = sync.OnceValues(func() (*Engine, error) { return New(files) })

func engine(t testing.TB) *Engine {
	t.Helper()
	e, err := load()
	if err != nil {
		t.Fatalf("%v (make build)", err)
	}
	return e
}

// sounds are frames of a vowel, a hiss and a pause, and of nothing else.
func sounds(seed uint64, n int) [][]int16 {
	r := rand.New(rand.NewPCG(seed, 1))
	var frames [][]int16
	for i := range n {
		frame := make([]int16, speech.FrameSamples)
		for k := range frame {
			switch i / 20 % 3 {
			case 0:
				frame[k] = int16(8000 * ((i*len(frame)+k)%133 - 66) / 66)
			case 1:
				frame[k] = int16(r.IntN(8000) - 4000)
			}
		}
		frames = append(frames, frame)
	}
	return frames
}

func likely(t testing.TB, s *Stream, frames [][]int16) (all []float32) {
	for _, f := range frames {
		p, err := s.Speech(f)
		if err != nil || p < 0 || p > 1 {
			t.Errorf("%v, %v", p, err)
		}
		all = append(all, p)
	}
	return all
}

// Many streams share one model: each hears its own sound alone, whatever the others hear meanwhile.
func TestStreamsAreApart(t *testing.T) {
	e := engine(t)
	var want [8][]float32
	for i := range want {
		want[i] = likely(t, e.Stream(), sounds(uint64(i), 120))
	}
	if slices.Equal(want[0], want[1]) {
		t.Error("two sounds are as likely speech as each other")
	}
	var g sync.WaitGroup
	for i := range want {
		g.Go(func() {
			if got := likely(t, e.Stream(), sounds(uint64(i), 120)); !slices.Equal(got, want[i]) {
				t.Errorf("stream %d hears something else among others", i)
			}
		})
	}
	g.Wait()
	if most := cap(e.room); len(e.room) > most || len(e.idle) != len(e.room) {
		t.Errorf("%d of %d runs were given back, of at most %d", len(e.idle), len(e.room), most)
	}
}

func TestAFrameOfAnotherLength(t *testing.T) {
	s := engine(t).Stream()
	for _, n := range []int{0, 1, speech.FrameSamples - 1, speech.FrameSamples + 1} {
		if _, err := s.Speech(make([]int16, n)); err == nil {
			t.Errorf("a frame of %d samples is taken", n)
		}
	}
}

func TestWhatIsNoLibraryAndNoModel(t *testing.T) {
	engine(t)
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("MZ"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		files Files
		says  string
	}{
		{Files{files.Library, bad}, "load the model"},
		{Files{bad, files.Model}, "another ONNX Runtime"}, // a process has one
	} {
		if _, err := New(c.files); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.files, err)
		}
	}
}

// BenchmarkSilero is one frame; share is what one stream takes of a CPU.
func BenchmarkSilero(b *testing.B) {
	s, frames := engine(b).Stream(), sounds(1, 60)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Speech(frames[i%len(frames)]); err != nil {
			b.Fatal(err)
		}
	}
	frame := speech.Duration(speech.FrameSamples, speech.Rate)
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(frame), "%share")
}

// BenchmarkSileroStream is what a stream holds.
func BenchmarkSileroStream(b *testing.B) {
	e := engine(b)
	b.ReportAllocs()
	for b.Loop() {
		stream = e.Stream()
	}
}

var stream *Stream
