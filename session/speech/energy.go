package speech

import "math"

// EnergyDetector takes for speech what is louder than the noise and has the pitch of a voice. It needs no model, and is no
// match for one: music, an animal and whoever else talks in the room are speech to it, and a whisper is not.
//
// It belongs to one stream, and to one goroutine at a time.
type EnergyDetector struct {
	floor float64 // level of the noise, in dBFS
	after int     // frames since the last one with a pitch
}

// The levels are in dB. What is not 9 dB above the noise is part of it, and so is what nobody could hear. The noise is
// thought to be lower at once, and higher as fast as a fan starts; what has a voice's pitch is no noise.
const (
	overFloor   = 9.0
	quietest    = -55.0
	floorRises  = 0.2  // a frame: 6 dB a second
	pitchRises  = 0.02 // where there is a pitch: a hum that never ends is noise in the end
	floorBegins = -50.0
)

// How likely speech is, in the words of an [Endpointer] at 0.5: loud without a pitch is what it was before, since consonants
// have none, and neither has a cough.
const (
	isSpeech  = 0.9
	isUnclear = 0.4
	isNone    = 0.0
)

// tail is how many loud frames without a pitch may follow one with it and be as much speech: most words end in them.
const tail = 2

// NewEnergyDetector makes one that knows nothing of its stream.
func NewEnergyDetector() *EnergyDetector { return &EnergyDetector{floor: floorBegins, after: tail + 1} }

// Speech is how likely the next frame, of [FrameSamples] at [Rate], is speech: one of three answers.
func (d *EnergyDetector) Speech(frame []int16) float32 {
	x := withoutRumble(frame)
	level := power(x)
	loud := level > max(d.floor+overFloor, quietest)
	pitched := loud && hasPitch(x)
	switch {
	case level < d.floor:
		d.floor = level
	case pitched:
		d.floor += pitchRises
	default:
		d.floor = min(d.floor+floorRises, level)
	}
	d.floor = max(d.floor, Quietest)
	if d.after++; pitched {
		d.after = 0
	}
	switch {
	case loud && d.after <= tail:
		return isSpeech
	case loud:
		return isUnclear
	}
	return isNone
}

// halved is a frame at half the rate: all that is looked at here is below 4 kHz.
type halved [FrameSamples / 2]float64

// withoutRumble is the frame without what is below about 100 Hz, where mains hum and where no voice has much.
func withoutRumble(frame []int16) (x halved) {
	const keep = 0.92
	var in, out float64
	for i := range x {
		v := (float64(frame[2*i]) + float64(frame[2*i+1])) / 2
		out = keep * (out + v - in)
		in = v
		x[i] = out
	}
	return x
}

// power is the level of x in dBFS.
func power(x halved) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	if sum == 0 {
		return Quietest
	}
	return max(Quietest, 10*math.Log10(sum/float64(len(x))/(1<<30)))
}

// The pitch of voices, as lags at half the rate: 400 to 75 Hz. Of a period as long as that a frame has two.
const (
	shortestLag = Rate / 2 / 400
	longestLag  = Rate / 2 / 75
)

const (
	leastPeriodic = 0.6    // how much a voice is like itself a period before; noise is at 0.4 at most
	leastRich     = 0.0002 // how much of a voice cannot be told from the two samples before; of a tone nearly nothing
)

// hasPitch says whether x is periodic as voices are, and no mere tone.
func hasPitch(x halved) bool {
	best := 0.0
	for lag := shortestLag; lag <= longestLag; lag++ {
		var both, here, there float64
		for i := lag; i < len(x); i++ {
			both += x[i] * x[i-lag]
			here += x[i] * x[i]
			there += x[i-lag] * x[i-lag]
		}
		if here > 0 && there > 0 {
			best = max(best, both/math.Sqrt(here*there))
		}
	}
	return best >= leastPeriodic && unpredicted(x) >= leastRich
}

// unpredicted is how much of x is left when each sample is predicted from the two before it, as well as that can be done.
func unpredicted(x halved) float64 {
	var all, a, b, ab, xa, xb float64
	for i := 2; i < len(x); i++ {
		all += x[i] * x[i]
		a += x[i-1] * x[i-1]
		b += x[i-2] * x[i-2]
		ab += x[i-1] * x[i-2]
		xa += x[i] * x[i-1]
		xb += x[i] * x[i-2]
	}
	det := a*b - ab*ab
	if all == 0 || det <= 0 {
		return 0
	}
	return 1 - (xa*(xa*b-xb*ab)+xb*(xb*a-xa*ab))/det/all
}
