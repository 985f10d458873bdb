package speech

import (
	"encoding/binary"
	"math"
)

// mix appends the mean of the channels, for every sample in pcm, to dst. What is left over of a last sample is left out.
func (f wavFormat) mix(dst []int16, pcm []byte) []int16 {
	width := f.bits / 8
	for ; len(pcm) >= f.align(); pcm = pcm[f.align():] {
		sum := int64(0)
		for c := range f.channels {
			sum += int64(f.sample(pcm[c*width:]))
		}
		dst = append(dst, to16(sum/int64(f.channels)))
	}
	return dst
}

// sample is the first sample of pcm on a scale of 32 bits.
func (f wavFormat) sample(pcm []byte) int32 {
	switch f.bits {
	case 8:
		return (int32(pcm[0]) - 128) << 24
	case 16:
		return int32(binary.LittleEndian.Uint16(pcm)) << 16
	case 24:
		return int32(uint32(pcm[0])<<8 | uint32(pcm[1])<<16 | uint32(pcm[2])<<24)
	}
	bits := binary.LittleEndian.Uint32(pcm)
	if f.tag == tagFloat {
		return fromFloat(math.Float32frombits(bits))
	}
	return int32(bits)
}

// fromFloat puts -1 … 1 on a scale of 32 bits; what is outside is clipped, what is not a number is silence.
func fromFloat(v float32) int32 {
	switch {
	case v != v:
		return 0
	case v >= 1:
		return math.MaxInt32
	case v <= -1:
		return math.MinInt32
	}
	return int32(v * (1 << 31))
}

// to16 rounds a scale of 32 bits to one of 16.
func to16(v int64) int16 { return int16(min((v+1<<15)>>16, math.MaxInt16)) }
