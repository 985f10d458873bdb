package speech

import "math"

// designFilters makes one low-pass filter for each of phases+1 places of an output between two samples of the input, the last being the first
// one a sample later. Each has 2*half taps, for the samples from half-1 before the place to half behind it.
//
// The prototype is a sinc under a Kaiser window; its width and cut-off follow from the stop band, as in Oppenheim and Schafer, "Discrete-Time
// Signal Processing", section 7.6. The stop band begins at half the slower rate, so that nothing folds back.
func designFilters(in, out, phases, half int) [][]float32 {
	slower := math.Min(1, float64(out)/float64(in))     // in terms of the input's rate
	width := (stopband - 7.95) / (2.285 * 2 * math.Pi * // of the transition, the same
		2 * float64(half))
	cutoff := slower/2 - width/2
	beta := 0.1102 * (stopband - 8.7)
	filters := make([][]float32, phases+1)
	for p := range filters {
		place := float64(p) / float64(phases)
		taps := make([]float64, 2*half)
		for i := range taps {
			t := float64(i-half+1) - place
			taps[i] = sinc(2*cutoff*t) * kaiser(t/float64(half), beta)
		}
		filters[p] = unity(taps)
	}
	return filters
}

// unity scales taps so that a constant keeps its level at every phase.
func unity(taps []float64) []float32 {
	sum := 0.0
	for _, t := range taps {
		sum += t
	}
	scaled := make([]float32, len(taps))
	for i, t := range taps {
		scaled[i] = float32(t / sum)
	}
	return scaled
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser is the Kaiser window at x, from -1 to 1.
func kaiser(x, beta float64) float64 {
	if x < -1 || x > 1 {
		return 0
	}
	return bessel(beta*math.Sqrt(1-x*x)) / bessel(beta)
}

// bessel is the modified Bessel function of the first kind and order zero, as a power series.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= (x / 2) / k * (x / 2) / k
		sum += term
	}
	return sum
}
