package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
)

// rate is that of flite's voices and of every recogniser, in Hz.
const rate = 16000

// header is that of a WAV file with nothing but samples: RIFF, fmt and data, 44 bytes.
const header = 44

// samplesOf are those of a WAV file as flite writes it: PCM16, mono, 16 kHz.
func samplesOf(wav []byte) ([]int16, error) {
	le := binary.LittleEndian
	if len(wav) < header || !bytes.HasPrefix(wav, []byte("RIFF")) || le.Uint16(wav[22:]) != 1 || le.Uint32(wav[24:]) != rate || le.Uint16(wav[34:]) != 16 {
		return nil, errors.New("it is no WAV file of PCM16, mono, at 16 kHz")
	}
	samples := make([]int16, (len(wav)-header)/2)
	for i := range samples {
		samples[i] = int16(le.Uint16(wav[header+2*i:]))
	}
	return samples, nil
}

// wav is a file of samples.
func wav(samples []int16) []byte {
	le := binary.LittleEndian
	n := uint32(2 * len(samples))
	b := le.AppendUint32([]byte("RIFF"), n+header-8)
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1} { // PCM, mono
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(le.AppendUint32(b, rate), 2*rate)
	b = le.AppendUint16(le.AppendUint16(b, 2), 16)
	b = le.AppendUint32(append(b, "data"...), n)
	for _, s := range samples {
		b = le.AppendUint16(b, uint16(s))
	}
	return b
}

// white is so much white noise, the same for the same seed.
func white(n int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 2026))
	noise := make([]float64, n)
	for i := range noise {
		noise[i] = r.NormFloat64()
	}
	return noise
}

// babble is other people who talk at once, over and over for as long as it takes.
func babble(n int, others [][]int16) []float64 {
	noise := make([]float64, n)
	for _, o := range others {
		scale := 1 / max(1, power(floats(o))) // each as loud as the others
		for i := range noise {
			noise[i] += float64(o[i%len(o)]) * math.Sqrt(scale)
		}
	}
	return noise
}

// mix adds noise to speech so that the speech, over its whole length, has so many dB more power.
func mix(speech []int16, noise []float64, db float64) []int16 {
	scale := math.Sqrt(power(floats(speech)) / power(noise) / math.Pow(10, db/10))
	mixed := make([]int16, len(speech))
	for i, s := range speech {
		mixed[i] = int16(math.Round(min(math.MaxInt16, max(math.MinInt16, float64(s)+scale*noise[i]))))
	}
	return mixed
}

func floats(samples []int16) []float64 {
	f := make([]float64, len(samples))
	for i, s := range samples {
		f[i] = float64(s)
	}
	return f
}

// power is the mean of the squares.
func power(samples []float64) float64 {
	sum := 0.0
	for _, s := range samples {
		sum += s * s
	}
	return sum / float64(max(1, len(samples)))
}
