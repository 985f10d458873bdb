package speech

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// riff puts a WAV file together, byte for byte, for a test to damage.
func riff(chunks ...[]byte) []byte {
	body := append([]byte("WAVE"), bytes.Join(chunks, nil)...)
	return chunk("RIFF", body)
}

// chunk pads an odd body, as the format wants.
func chunk(id string, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(body)))
	b = append(b, body...)
	return append(b, make([]byte, len(body)%2)...)
}

// format is a fmt chunk; more is what follows the 16 bytes.
func format(tag, channels, rate, bits int, more ...byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(tag))
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*channels*bits/8))
	b = le.AppendUint16(b, uint16(channels*bits/8))
	b = le.AppendUint16(b, uint16(bits))
	return chunk("fmt ", append(b, more...))
}

// extended is what an extensible format adds: 22 more bytes, with the tag in a GUID.
func extended(tag byte) []byte {
	return append([]byte{22, 0, 16, 0, 4, 0, 0, 0, tag, 0}, subformat...)
}

func data(b ...byte) []byte { return chunk("data", b) }

func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestReadWAV(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		file []byte
		want []int16
	}{
		{"8 bits, unsigned", riff(format(1, 1, Rate, 8), data(0, 128, 255)), []int16{-32768, 0, 32512}},
		{"16 bits", riff(format(1, 1, Rate, 16), data(1, 0, 0xFF, 0xFF, 0, 0x80)), []int16{1, -1, -32768}},
		{"24 bits, rounded", riff(format(1, 1, Rate, 24), data(0x7F, 1, 0, 0x80, 1, 0, 0xFF, 0xFF, 0x7F)), []int16{1, 2, 32767}},
		{"32 bits", riff(format(1, 1, Rate, 32), data(0, 0, 5, 0, 0, 0, 0, 0x80)), []int16{5, -32768}},
		{"float, clipped", riff(format(3, 1, Rate, 32), data(floats(0.5, -1, 1, 7, -7, nan)...)),
			[]int16{16384, -32768, 32767, 32767, -32768, 0}},
		{"two channels", riff(format(1, 2, Rate, 16), data(10, 0, 20, 0, 0xFF, 0x7F, 0xFF, 0x7F)), []int16{15, 32767}},
		{"channels that cancel out", riff(format(1, 2, Rate, 16), data(0, 0x40, 0, 0xC0)), []int16{0}},
		{"eight channels", riff(format(1, 8, Rate, 8), data(128, 128, 128, 128, 128, 128, 128, 136)), []int16{256}},
		{"extensible", riff(format(0xFFFE, 1, Rate, 16, extended(1)...), data(7, 0)), []int16{7}},
		{"extensible float", riff(format(0xFFFE, 1, Rate, 32, extended(3)...), data(floats(0.25)...)), []int16{8192}},
		{"chunks before, between, behind", riff(chunk("JUNK", make([]byte, 101)), format(1, 1, Rate, 16), chunk("LIST", []byte("odd")),
			data(7, 0), chunk("LIST", []byte("more"))), []int16{7}},
		{"a longer fmt chunk", riff(format(1, 1, Rate, 16, make([]byte, 40)...), data(7, 0)), []int16{7}},
		{"half a sample at the end", riff(format(1, 2, Rate, 16), data(7, 0, 7, 0, 9)), []int16{7}},
		{"no audio", riff(format(1, 1, Rate, 16), data()), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadWAV(iotest.OneByteReader(bytes.NewReader(c.file)), 100)
			if err != nil || got.Rate != Rate || !slices.Equal(got.Samples, c.want) {
				t.Errorf("%+v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestReadWAVWithLyingLengths(t *testing.T) {
	good := riff(format(1, 1, 22050, 16), data(1, 0, 2, 0, 3, 0))
	for _, length := range []uint32{0, 0xFFFFFFFF, 0x7FFFF000, 8} {
		file := bytes.Clone(good)
		binary.LittleEndian.PutUint32(file[4:], length)
		binary.LittleEndian.PutUint32(file[40:], length)
		got, err := ReadWAV(bytes.NewReader(file), 100)
		if err != nil || got.Rate != 22050 || !slices.Equal(got.Samples, []int16{1, 2, 3}) {
			t.Errorf("length %#x: %+v, %v", length, got, err)
		}
	}
}

func TestReadWAVRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		file []byte
		want error
		says string
	}{
		{"nothing", nil, ErrNotWAV, "not a WAV"},
		{"text", []byte("hello, is this a WAV file?"), ErrNotWAV, `"hello, is th"`},
		{"big-endian", []byte("RIFX\x00\x00\x00\x00WAVE"), ErrNotWAV, `"RIFX`},
		{"header alone", riff(), ErrNotWAV, "no audio"},
		{"no data", riff(format(1, 1, Rate, 16)), ErrNotWAV, "no audio"},
		{"data first", riff(data(1, 0)), ErrNotWAV, "no fmt chunk"},
		{"short fmt", riff(chunk("fmt ", make([]byte, 14)), data(1, 0)), ErrNotWAV, "14 bytes"},
		{"cut fmt", riff(format(1, 1, Rate, 16))[:30], ErrNotWAV, "ends too early"},
		{"a-law", riff(format(6, 1, 8000, 8), data(1, 0)), ErrNotPCM, "0x0006"},
		{"MP3", riff(format(0x55, 1, 8000, 0), data(1, 0)), ErrNotPCM, "0x0055"},
		{"12 bits", riff(format(1, 1, Rate, 12), data(1, 0)), ErrNotPCM, "12 bits"},
		{"double", riff(format(3, 1, Rate, 64), data(1, 0)), ErrNotPCM, "64 bits"},
		{"extensible a-law", riff(format(0xFFFE, 1, Rate, 16, extended(6)...), data(7, 0)), ErrNotPCM, "0x0006"},
		{"extensible of another kind", riff(format(0xFFFE, 1, Rate, 16, make([]byte, 24)...), data(7, 0)), ErrNotPCM, "0xFFFE"},
		{"no channel", riff(format(1, 0, Rate, 16), data(1, 0)), ErrNotPCM, "0 channels"},
		{"nine channels", riff(format(1, 9, Rate, 16), data(1, 0)), ErrNotPCM, "9 channels"},
		{"no rate", riff(format(1, 1, 0, 16), data(1, 0)), ErrNotWAV, "0 Hz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadWAV(bytes.NewReader(c.file), 100)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || got.Samples != nil {
				t.Errorf("%v, %v, want %v that says %q", got, err, c.want, c.says)
			}
		})
	}
}

func TestReadWAVStopsAtItsLimit(t *testing.T) {
	file := riff(format(1, 1, Rate, 16), data(1, 0, 2, 0, 3, 0))
	got, err := ReadWAV(bytes.NewReader(file), 2)
	if !errors.Is(err, ErrTooLong) || !slices.Equal(got.Samples, []int16{1, 2}) {
		t.Errorf("limit 2: %v, %v", got.Samples, err)
	}
	if got, err = ReadWAV(bytes.NewReader(file), 3); err != nil || len(got.Samples) != 3 {
		t.Errorf("limit 3: %v, %v", got.Samples, err)
	}
	if _, err = ReadWAV(bytes.NewReader(file), -1); !errors.Is(err, ErrTooLong) {
		t.Errorf("limit -1: %v", err)
	}
}

func TestReadWAVPassesOnReadErrors(t *testing.T) {
	broken := errors.New("broken")
	file := riff(chunk("JUNK", make([]byte, 8)), format(1, 1, Rate, 16), data(1, 0, 2, 0))
	for n := range file {
		if _, err := ReadWAV(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken)), 100); !errors.Is(err, broken) {
			t.Fatalf("broken after %d bytes: %v", n, err)
		}
	}
}

func TestWriteWAV(t *testing.T) {
	samples := noise(7, 40000)
	var file bytes.Buffer
	if err := WriteWAV(&file, 24000, samples); err != nil {
		t.Fatal(err)
	}
	if want := riff(format(1, 1, 24000, 16), chunk("data", Bytes(samples))); !bytes.Equal(file.Bytes(), want) {
		t.Error("not the file that the format describes")
	}
	got, err := ReadWAV(&file, len(samples))
	if err != nil || got.Rate != 24000 || !slices.Equal(got.Samples, samples) {
		t.Errorf("read back: %d samples at %d Hz, %v", len(got.Samples), got.Rate, err)
	}
	if err := WriteWAV(&file, 0, nil); err == nil {
		t.Error("a rate of 0: no error")
	}
	for _, room := range []int{0, 44} {
		if err := WriteWAV(&full{room}, Rate, samples); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("a disk with room for %d bytes: %v", room, err)
		}
	}
}

// full is a disk with so much room.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// FuzzReadWAV holds memory to what arrived: a header may promise gigabytes.
func FuzzReadWAV(f *testing.F) {
	f.Add(riff(format(1, 1, Rate, 16), data(1, 0, 2, 0)))
	f.Add(riff(chunk("LIST", []byte("odd")), format(0xFFFE, 2, 44100, 24, extended(1)...), data(1, 2, 3, 4, 5, 6)))
	f.Add(riff(format(3, 8, 192000, 32), data(floats(1, 2, 3, 4, 5, 6, 7, 8)...)))
	f.Add(riff(format(1, 1, 8000, 8), data(1))[:46])
	f.Fuzz(func(t *testing.T, file []byte) {
		const limit = 1000
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		wav, err := ReadWAV(bytes.NewReader(file), limit)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20+8*uint64(len(file)) {
			t.Errorf("%d bytes allocated for a file of %d", grown, len(file))
		}
		if len(wav.Samples) > min(limit, len(file)) {
			t.Errorf("%d samples from %d bytes", len(wav.Samples), len(file))
		}
		if err != nil {
			if !errors.Is(err, ErrNotWAV) && !errors.Is(err, ErrNotPCM) && !errors.Is(err, ErrTooLong) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		var again bytes.Buffer
		if err := WriteWAV(&again, wav.Rate, wav.Samples); err != nil {
			t.Fatal(err)
		}
		if back, err := ReadWAV(&again, limit); err != nil || !slices.Equal(back.Samples, wav.Samples) || back.Rate != wav.Rate {
			t.Errorf("written and read again: %v", err)
		}
	})
}
