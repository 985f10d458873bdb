package speech

import (
	"fmt"
	"math"
)

// Rates that a [Resampler] takes, in Hz.
const (
	MinRate = 8000
	MaxRate = 192000
)

const (
	reach     = 20   // samples of the slower rate that the filter sees to either side: its delay
	stopband  = 84.0 // dB, at and above half the slower rate
	maxPhases = 1024 // filters kept apart; where the rates ask for more, neighbours are blended
	intake    = 1024 // samples taken in at a time
)

// Resampler changes the rate of a stream of mono samples: a polyphase FIR filter, a windowed sinc, evaluated only where an output falls.
//
// How the stream is cut into chunks makes no difference to what comes out. Output k belongs to the moment k/out seconds: the filter delays by
// holding samples back, 20 of the slower of the two rates (1.25 ms at 16 kHz), not by shifting them. After n samples and Flush exactly
// round(n*out/in) have come out, halves rounded up. What lies at half the slower rate or above is at least 80 dB down; up to 0.36 of the
// slower rate (5.8 kHz of 16) nothing is lost.
//
// One goroutine uses it at a time. Process allocates nothing but dst, when that has no room.
type Resampler struct {
	in, out int // in lowest terms
	half    int // samples of the input to either side

	filters [][]float32 // one for each phase, and one more to blend with; nil when the rates are the same
	blended []float32   // scratch, nil where every phase has its own filter

	window []float32 // the input that is still needed: before at, zeros stand for what was before the stream
	at     int       // where in window the next output falls, rounded down
	phase  int       // and how far behind that, in out-ths of a sample

	read, written int // since the start or Flush
}

// NewResampler makes a resampler from in to out, both in Hz. It returns an error for a rate outside [MinRate] … [MaxRate].
func NewResampler(in, out int) (*Resampler, error) {
	for _, rate := range []int{in, out} {
		if rate < MinRate || rate > MaxRate {
			return nil, fmt.Errorf("speech: resample from %d to %d Hz: rates go from %d to %d", in, out, MinRate, MaxRate)
		}
	}
	r := &Resampler{in: in / gcd(in, out), out: out / gcd(in, out)}
	if in == out {
		return r, nil
	}
	r.half = max(reach, ceilDiv(reach*in, out))
	r.filters = designFilters(in, out, min(r.out, maxPhases), r.half)
	if r.out > maxPhases {
		r.blended = make([]float32, 2*r.half)
	}
	r.window = make([]float32, 0, 2*r.half+max(r.half, intake))
	r.reset()
	return r, nil
}

// Resample changes the rate of a whole clip, from in to out Hz. It returns an error for a rate outside [MinRate] … [MaxRate].
func Resample(samples []int16, in, out int) ([]int16, error) {
	r, err := NewResampler(in, out)
	if err != nil {
		return nil, err
	}
	dst := make([]int16, 0, len(samples)*out/in+1)
	return r.Flush(r.Process(dst, samples)), nil
}

// Process takes src, the next samples of the stream, and appends the outputs that can now be told to dst, which it returns.
func (r *Resampler) Process(dst, src []int16) []int16 {
	r.read += len(src)
	if r.filters == nil {
		r.written += len(src)
		return append(dst, src...)
	}
	for len(src) > 0 {
		n := min(len(src), intake)
		for _, s := range src[:n] {
			r.window = append(r.window, float32(s))
		}
		src = src[n:]
		dst = r.emit(dst, math.MaxInt)
	}
	return dst
}

// Flush ends the stream: it appends the outputs that were held back to dst, which it returns. The next Process begins another stream.
func (r *Resampler) Flush(dst []int16) []int16 {
	if r.filters != nil {
		total := (2*r.read*r.out + r.in) / (2 * r.in)
		for r.written < total {
			heard := len(r.window)
			r.window = r.window[:heard+r.half]
			clear(r.window[heard:])
			dst = r.emit(dst, total)
		}
		r.reset()
	}
	r.read, r.written = 0, 0
	return dst
}

// reset puts silence before the stream.
func (r *Resampler) reset() {
	r.window = r.window[:r.half]
	clear(r.window)
	r.at, r.phase = r.half, 0
}

// emit appends every output, up to the total, whose input is all there, then lets go of the input before the next one.
func (r *Resampler) emit(dst []int16, total int) []int16 {
	for r.at+r.half < len(r.window) && r.written < total {
		v := dot(r.window[r.at-r.half+1:r.at+r.half+1], r.filter())
		dst = append(dst, clip(v))
		r.written++
		r.phase += r.in
		r.at += r.phase / r.out
		r.phase %= r.out
	}
	done := r.at - r.half // at starts at half, and never moves on by more
	kept := copy(r.window, r.window[done:])
	r.window, r.at = r.window[:kept], r.at-done
	return dst
}

// filter is the one for the present phase.
func (r *Resampler) filter() []float32 {
	if r.blended == nil {
		return r.filters[r.phase]
	}
	place := float64(r.phase) * maxPhases / float64(r.out)
	below := int(place)
	share := float32(place - float64(below))
	a, b := r.filters[below], r.filters[below+1]
	for i := range r.blended {
		r.blended[i] = a[i] + share*(b[i]-a[i])
	}
	return r.blended
}

// dot is the sum of products; four sums at once, since each addition waits for the one before it.
func dot(x, h []float32) float32 {
	x = x[:len(h)]
	var a, b, c, d float32
	for len(h) >= 4 && len(x) >= 4 {
		a += x[0] * h[0]
		b += x[1] * h[1]
		c += x[2] * h[2]
		d += x[3] * h[3]
		x, h = x[4:], h[4:]
	}
	for i, v := range h {
		a += x[i] * v
	}
	return a + b + (c + d)
}

// clip rounds to the nearest sample.
func clip(v float32) int16 {
	switch {
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	case v < 0:
		return int16(v - 0.5)
	}
	return int16(v + 0.5)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
