package speech

import (
	"encoding/binary"
	"math"
	"time"
)

// Rate is the sample rate that sessions and recognisers work at, in Hz.
const Rate = 16000

// BytesPerSample is the size of one PCM16 sample.
const BytesPerSample = 2

// Samples decodes PCM16 little-endian bytes. An odd last byte is half a sample and left out.
func Samples(pcm []byte) []int16 {
	return AppendSamples(make([]int16, 0, len(pcm)/BytesPerSample), pcm)
}

// AppendSamples decodes pcm as [Samples] does and appends the result to dst, which allocates nothing when dst has room.
func AppendSamples(dst []int16, pcm []byte) []int16 {
	for ; len(pcm) >= BytesPerSample; pcm = pcm[BytesPerSample:] {
		dst = append(dst, int16(binary.LittleEndian.Uint16(pcm)))
	}
	return dst
}

// Bytes encodes samples as PCM16 little-endian.
func Bytes(samples []int16) []byte {
	return AppendBytes(make([]byte, 0, len(samples)*BytesPerSample), samples)
}

// AppendBytes encodes samples as [Bytes] does and appends the result to dst, which allocates nothing when dst has room.
func AppendBytes(dst []byte, samples []int16) []byte {
	for _, s := range samples {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s))
	}
	return dst
}

// Duration is how long n samples of one channel last at rate Hz; 0 when rate is not positive.
func Duration(n, rate int) time.Duration {
	if rate <= 0 {
		return 0
	}
	whole, rest := n/rate, n%rate // apart, so that hours of sound do not overflow
	return time.Duration(whole)*time.Second + time.Duration(rest)*time.Second/time.Duration(rate)
}

// BytesDuration is how long n bytes of mono PCM16 last at rate Hz.
func BytesDuration(n, rate int) time.Duration { return Duration(n/BytesPerSample, rate) }

// Count is how many samples of one channel d lasts at rate Hz, rounded down.
func Count(d time.Duration, rate int) int {
	whole, rest := d/time.Second, d%time.Second
	return int(whole)*rate + int(rest*time.Duration(rate)/time.Second)
}

// Quietest is the level in dBFS that [Level] gives for digital silence, and never goes below.
const Quietest = -100.0

// Level is the root mean square of samples in dBFS: 0 for a full-scale square wave, -3 for a full-scale sine, [Quietest] for silence
// and for no samples at all.
func Level(samples []int16) float64 {
	sum := 0.0
	for _, s := range samples {
		sum += float64(s) * float64(s)
	}
	if sum == 0 {
		return Quietest
	}
	mean := sum / float64(len(samples)) / (1 << 30)
	return max(Quietest, 10*math.Log10(mean))
}
