package pipeline

import "math"

// of maps a number. A range of input without a width gives the lower end of the output, whatever the function.
func (s *Scale) of(raw float64) float64 {
	if s == nil {
		return raw
	}
	inMin, inMax, outMin, outMax := s.Input[0], s.Input[1], s.Output[0], s.Output[1]
	if inMax == inMin {
		return outMin
	}
	t := clamp01((raw - inMin) / (inMax - inMin))
	switch s.Fn {
	case "clamp": // which leaves the range of the input aside
		return math.Max(outMin, math.Min(outMax, raw))
	case "step":
		if t >= 0.5 {
			return outMax
		}
		return outMin
	case "smoothstep":
		t = t * t * (3 - 2*t)
	}
	return outMin + t*(outMax-outMin)
}

func clamp01(t float64) float64 { return math.Max(0, math.Min(1, t)) }

// ease is how far a change has come after a share t of its time, from 0 to 1. An arc goes there and back.
func ease(easing string, t float64) float64 {
	switch easing {
	case "easeIn":
		return t * t
	case "easeOut":
		return 1 - (1-t)*(1-t)
	case "easeInOut":
		if t < 0.5 {
			return 2 * t * t
		}
		return 1 - (2-2*t)*(2-2*t)/2
	case "arc":
		return math.Sin(math.Pi * t)
	}
	return t
}
