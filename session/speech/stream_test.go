package speech

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// hear joins the chunks of a stream, and says what is wrong with one.
func hear(t *testing.T, chunks iter.Seq2[Chunk, error]) (samples []int16, rate int, err error) {
	t.Helper()
	for c, err := range chunks {
		if err != nil {
			if c.Samples != nil {
				t.Error("an error comes with sound")
			}
			return samples, rate, err
		}
		if rate != 0 && rate != c.Rate || len(c.Samples) == 0 || c.Duration() > LongestChunk {
			t.Errorf("a chunk of %d samples at %d Hz", len(c.Samples), c.Rate)
		}
		samples, rate = append(samples, c.Samples...), c.Rate
	}
	return samples, rate, nil
}

func TestStreams(t *testing.T) {
	want := noise(3, 5000)
	var mono bytes.Buffer
	if err := WriteWAV(&mono, 24000, want); err != nil {
		t.Fatal(err)
	}
	for _, length := range []uint32{10000, 0, math.MaxUint32, 0x7FFFF000, 10001} {
		binary.LittleEndian.PutUint32(mono.Bytes()[40:], length)
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader, "in halves": iotest.HalfReader, "with its end": iotest.DataErrReader,
		} {
			samples, rate, err := hear(t, StreamWAV(cut(bytes.NewReader(mono.Bytes())), time.Minute))
			if err != nil || rate != 24000 || !slices.Equal(samples, want) {
				t.Errorf("WAV %s, length %d: %d samples at %d Hz, %v", name, length, len(samples), rate, err)
			}
			samples, rate, err = hear(t, StreamPCM(cut(bytes.NewReader(append(Bytes(want), 1))), 24000, time.Minute))
			if err != nil || rate != 24000 || !slices.Equal(samples, want) {
				t.Errorf("PCM %s: %d samples at %d Hz, %v", name, len(samples), rate, err)
			}
		}
	}
	stereo := riff(format(1, 2, Rate, 16), data(10, 0, 20, 0, 1), chunk("LIST", []byte("title")))
	if samples, _, err := hear(t, StreamWAV(iotest.OneByteReader(bytes.NewReader(stereo)), time.Minute)); err != nil || !slices.Equal(samples, []int16{15}) {
		t.Errorf("two channels, and a title behind: %v, %v", samples, err)
	}
}

func TestStreamsComeAsTheyArrive(t *testing.T) {
	r, w := io.Pipe()
	next, stop := iter.Pull2(StreamPCM(r, Rate, time.Minute))
	defer stop()
	for i := range int16(3) {
		written := make(chan error)
		go func() {
			_, err := w.Write(Bytes([]int16{i, i}))
			written <- err
		}()
		if c, err, ok := next(); err != nil || !ok || !slices.Equal(c.Samples, []int16{i, i}) {
			t.Errorf("%v, %v", c, err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

func TestStreamsThatFail(t *testing.T) {
	broken := errors.New("broken")
	file := riff(format(1, 1, Rate, 16), data(make([]byte, 2*Rate)...))
	for _, c := range []struct {
		name    string
		chunks  iter.Seq2[Chunk, error]
		samples int
		want    error
	}{
		{"too long", StreamWAV(bytes.NewReader(file), time.Second/2), Rate / 2, ErrTooLong},
		{"just so long", StreamWAV(bytes.NewReader(file), time.Second), Rate, nil},
		{"no limit at all", StreamPCM(bytes.NewReader(file), Rate, 0), 0, ErrTooLong},
		{"broken", StreamPCM(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), Rate, time.Second), 1, broken},
		{"broken header", StreamWAV(io.MultiReader(bytes.NewReader(file[:30]), iotest.ErrReader(broken)), time.Second), 0, broken},
		{"no WAV", StreamWAV(strings.NewReader("Not found, and so on"), time.Second), 0, ErrNotWAV},
		{"MP3", StreamWAV(bytes.NewReader(riff(format(0x55, 1, Rate, 0), data(1, 0))), time.Second), 0, ErrNotPCM},
		{"a low rate", StreamWAV(bytes.NewReader(riff(format(1, 1, 7999, 16), data(1, 0))), time.Second), 0, ErrRate},
		{"a high rate", StreamPCM(bytes.NewReader(file), 192001, time.Second), 0, ErrRate},
		{"nothing", StreamPCM(strings.NewReader(""), Rate, time.Second), 0, nil},
	} {
		samples, _, err := hear(t, c.chunks)
		if !errors.Is(err, c.want) || len(samples) != c.samples {
			t.Errorf("%s: %d samples, %v", c.name, len(samples), err)
		}
	}
	for range StreamPCM(bytes.NewReader(file), Rate, time.Second) {
		break
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"one two", 7, "one two"}, {"one two", 6, "one"}, {"one two", 3, "one"}, {"one\ntwo three", 8, "one\ntwo"}, {"a bcdefghij", 8, "a bcdefg"},
		{"ééé", 3, "é"}, {"", 0, ""}, {"x", 0, ""},
	} {
		if got := Cut(c.text, c.most); got != c.want {
			t.Errorf("%q in %d bytes: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func FuzzStreamWAV(f *testing.F) {
	f.Add(riff(format(1, 1, Rate, 16), data(1, 0, 2, 0)))
	f.Add(riff(format(3, 8, 192000, 32), data(floats(1, 2, 3, 4, 5, 6, 7, 8)...)))
	f.Fuzz(func(t *testing.T, file []byte) {
		samples, rate, err := hear(t, StreamWAV(iotest.HalfReader(bytes.NewReader(file)), time.Minute))
		whole, wholeErr := ReadWAV(bytes.NewReader(file), Count(time.Minute, Rate))
		if errors.Is(err, ErrRate) || errors.Is(err, ErrTooLong) || errors.Is(wholeErr, ErrTooLong) {
			return
		}
		if (err == nil) != (wholeErr == nil) || err == nil && !slices.Equal(samples, whole.Samples) || len(samples) > 0 && rate != whole.Rate {
			t.Errorf("%d samples at %d Hz, %v; whole %d at %d, %v", len(samples), rate, err, len(whole.Samples), whole.Rate, wholeErr)
		}
	})
}
