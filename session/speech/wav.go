package speech

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Where the format is written down:
//
//   - "Multimedia Programming Interface and Data Specifications 1.0", IBM and Microsoft, 1991: RIFF, chunks, the fmt and data chunks;
//     8 bits are unsigned, more are signed, little-endian; a chunk of odd length is followed by one byte of padding.
//   - "Multiple channel audio data and WAVE files", Microsoft, 2001: WAVE_FORMAT_EXTENSIBLE and its sub-format.
//   - RFC 2361, appendix A: the registered format tags.

// Errors of [ReadWAV]; what it returns wraps one of them and says more, or is an error of the reader.
var (
	ErrNotWAV  = errors.New("not a WAV file")                   // no RIFF WAVE header, or a broken one
	ErrNotPCM  = errors.New("not PCM of a kind that is read")   // compressed, or a width or number of channels outside what is read
	ErrTooLong = errors.New("more samples than may be read")    // the samples up to the bound come with it
	errNoAudio = fmt.Errorf("%w: it has no audio", ErrNotWAV)   // ends before a data chunk
	errNoFmt   = fmt.Errorf("%w: no fmt chunk", ErrNotWAV)      // data comes first
	errCut     = fmt.Errorf("%w: it ends too early", ErrNotWAV) // inside a header
)

// WAV is the sound of a file, mixed to one channel.
type WAV struct {
	Rate    int // Hz, as the file says: not necessarily one that a [Resampler] takes
	Samples []int16
}

// Duration is how long it plays.
func (w WAV) Duration() time.Duration { return Duration(len(w.Samples), w.Rate) }

// ReadWAV reads a WAV file of 1 to 8 channels, mixed to one, in PCM of 8, 16, 24 or 32 bits or in 32-bit floating point, also as
// WAVE_FORMAT_EXTENSIBLE.
//
// Programs that write WAV to a pipe cannot know the length, and put 0 or a huge number where it belongs: then what is there is read to its
// end, as with a file that was cut off. A length that is less than what follows is believed, since other chunks may follow. At most limit
// samples of the mixed channel are read, and memory grows with what arrives, never with what a header promises: past limit the error is
// [ErrTooLong], and the WAV holds what came before. Otherwise errors wrap [ErrNotWAV] or [ErrNotPCM], or come from r, and the WAV is empty.
func ReadWAV(r io.Reader, limit int) (WAV, error) {
	wav, err := readWAV(r, limit)
	if err != nil {
		return wav, fmt.Errorf("speech: read WAV: %w", err)
	}
	return wav, nil
}

func readWAV(r io.Reader, limit int) (WAV, error) {
	f, size, err := readHeader(r)
	if err != nil {
		return WAV{}, err
	}
	return f.readData(dataOf(r, size), limit)
}

// readHeader reads everything before the audio, and how many bytes the file says that it takes.
func readHeader(r io.Reader) (f wavFormat, size uint32, err error) {
	var header [12]byte
	if err := fill(r, header[:], ErrNotWAV); err != nil {
		return f, 0, err
	}
	if string(header[:4]) != "RIFF" || string(header[8:]) != "WAVE" {
		return f, 0, fmt.Errorf("%w: it begins with %q", ErrNotWAV, header[:])
	}
	for {
		id, size, err := nextChunk(r)
		if err != nil {
			return f, 0, err
		}
		switch id {
		case "fmt ":
			f, err = readFormat(r, size)
		case "data":
			if f.channels == 0 {
				return f, 0, errNoFmt
			}
			return f, size, nil
		default:
			err = skip(r, padded(size))
		}
		if err != nil {
			return f, 0, err
		}
	}
}

// dataOf is the audio at the front of r: size bytes of it, or all where size is a placeholder.
func dataOf(r io.Reader, size uint32) io.Reader {
	if size == 0 || size == 0xFFFFFFFF {
		return r
	}
	return io.LimitReader(r, int64(size))
}

// nextChunk reads the eight bytes before a chunk.
func nextChunk(r io.Reader) (id string, size uint32, err error) {
	var header [8]byte
	if err := fill(r, header[:], errNoAudio); err != nil {
		return "", 0, err
	}
	return string(header[:4]), binary.LittleEndian.Uint32(header[4:]), nil
}

// padded is the room that a chunk takes.
func padded(size uint32) int64 { return int64(size) + int64(size&1) }

// skip leaves out n bytes, or fewer where the file ends.
func skip(r io.Reader, n int64) error {
	if _, err := io.CopyN(io.Discard, r, n); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// fill reads all of buf; short is the error for a file that ends before.
func fill(r io.Reader, buf []byte, short error) error {
	_, err := io.ReadFull(r, buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return short
	}
	return err
}

// Format tags.
const (
	tagPCM        = 0x0001
	tagFloat      = 0x0003
	tagExtensible = 0xFFFE
)

// subformat is what follows the tag in the GUID of an extensible format: {xxxxxxxx-0000-0010-8000-00AA00389B71}.
var subformat = []byte{0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71}

// Sizes of the fmt chunk: of the fields that every format has, and of an extensible one.
const (
	plainFormat      = 16
	extensibleFormat = 40
)

// wavFormat is a fmt chunk that was found good; its zero value means that there was none.
type wavFormat struct {
	tag, channels, rate, bits int
}

// readFormat reads a fmt chunk and refuses what cannot be read.
func readFormat(r io.Reader, size uint32) (wavFormat, error) {
	if size < plainFormat {
		return wavFormat{}, fmt.Errorf("%w: a fmt chunk of %d bytes", ErrNotWAV, size)
	}
	var buf [extensibleFormat]byte
	chunk := buf[:min(size, extensibleFormat)]
	if err := fill(r, chunk, errCut); err != nil {
		return wavFormat{}, err
	}
	if err := skip(r, padded(size)-int64(len(chunk))); err != nil {
		return wavFormat{}, err
	}
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(chunk[at:])) }
	f := wavFormat{tag: u16(0), channels: u16(2), rate: int(binary.LittleEndian.Uint32(chunk[4:])), bits: u16(14)}
	if f.tag == tagExtensible && len(chunk) == extensibleFormat && bytes.Equal(chunk[26:], subformat) {
		f.tag = u16(24)
	}
	return f, f.check(u16(12))
}

// check refuses a format that cannot be read, given the bytes that the file says one sample of every channel takes.
func (f wavFormat) check(align int) error {
	switch {
	case f.tag == tagPCM && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32):
	case f.tag == tagFloat && f.bits == 32:
	default:
		return fmt.Errorf("%w: format 0x%04X of %d bits", ErrNotPCM, f.tag, f.bits)
	}
	switch {
	case f.channels < 1 || f.channels > 8:
		return fmt.Errorf("%w: %d channels", ErrNotPCM, f.channels)
	case f.rate < 1 || f.rate > 1<<30:
		return fmt.Errorf("%w: a rate of %d Hz", ErrNotWAV, uint32(f.rate))
	case align != 0 && align != f.align():
		return fmt.Errorf("%w: %d bytes for %d samples of %d bits", ErrNotPCM, align, f.channels, f.bits)
	}
	return nil
}

// align is the size of one sample of every channel, in bytes.
func (f wavFormat) align() int { return f.channels * f.bits / 8 }

// readData reads and mixes the audio.
func (f wavFormat) readData(r io.Reader, limit int) (WAV, error) {
	wav := WAV{Rate: f.rate}
	buf := make([]byte, 1024*f.align())
	for {
		n, err := io.ReadFull(r, buf)
		room := max(limit, 0) - len(wav.Samples)
		n /= f.align()
		wav.Samples = f.mix(wav.Samples, buf[:min(n, room)*f.align()])
		switch {
		case n > room:
			return wav, ErrTooLong
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return wav, nil
		case err != nil:
			return WAV{}, err
		}
	}
}

// WriteWAV writes samples as a WAV file of one channel, 16 bits, at rate Hz. It returns an error of w, or one for a rate that is not positive
// or for more than the 4 GiB that a WAV file can hold.
func WriteWAV(w io.Writer, rate int, samples []int16) error {
	const most = (1<<32 - 1 - 36) / BytesPerSample
	if rate <= 0 || rate > 1<<30 || int64(len(samples)) > most {
		return fmt.Errorf("speech: write WAV: %d samples at %d Hz do not fit", len(samples), rate)
	}
	if _, err := w.Write(wavHeader(rate, len(samples)*BytesPerSample)); err != nil {
		return fmt.Errorf("speech: write WAV: %w", err)
	}
	var buf []byte
	for len(samples) > 0 {
		n := min(len(samples), 16384)
		buf = AppendBytes(buf[:0], samples[:n])
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("speech: write WAV: %w", err)
		}
		samples = samples[n:]
	}
	return nil
}

// wavHeader is everything before the audio: 44 bytes.
func wavHeader(rate, size int) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, 44), "RIFF"...)
	b = le.AppendUint32(b, uint32(36+size))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, plainFormat)
	b = le.AppendUint16(b, tagPCM)
	b = le.AppendUint16(b, 1) // channel
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*BytesPerSample))
	b = le.AppendUint16(b, BytesPerSample)
	b = le.AppendUint16(b, 8*BytesPerSample)
	b = append(b, "data"...)
	return le.AppendUint32(b, uint32(size))
}
