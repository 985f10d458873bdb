package gateway

import (
	"context"
	"slices"

	"vela/session"
	"vela/session/speech"
)

// Ear is one recogniser by itself, with no other that hears in its place when it fails.
type Ear struct {
	Engine
	one func() session.Transcriber
}

// Ears loads the recognisers that are there, of a gateway that does not run. What it also returns frees them again.
func (g *Gateway) Ears() (list []Ear, free func()) {
	if g.ears.local() {
		g.engines.load()
	}
	for _, m := range g.ears.models {
		m.load()
	}
	n := 0
	for _, e := range g.ears.report {
		if e.Available {
			list = append(list, Ear{e, g.ears.list[n]})
			n++
		}
	}
	return list, func() {
		g.ears.close()
		g.engines.close()
	}
}

// Hear is what it makes of an utterance of somebody whom it does not know: mono samples at [speech.Rate]. It may be called from
// several goroutines.
func (e Ear) Hear(ctx context.Context, samples []int16) (text string, err error) {
	for t, err := range e.one().Transcribe(ctx, slices.Chunk(samples, speech.Rate/50)) {
		switch {
		case err != nil:
			return "", err
		case t.Final:
			text = t.Text
		}
	}
	return text, context.Cause(ctx)
}
