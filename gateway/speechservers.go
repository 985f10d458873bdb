package gateway

import (
	"context"
	"slices"
	"sync"
)

// A speech server that the file names is asked whether it is there before it is said to be: nobody is to find that out in the
// middle of a turn. What cannot be asked, as an engine of this program or a command, is what it was found to be at the start.

// spoken are the engines that recognise and that speak.
type spoken struct{ ears, voices []Engine }

// askSpeech asks all speech servers at once, which takes up to 3 s.
func (g *Gateway) askSpeech(ctx context.Context) spoken {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	s := spoken{slices.Clone(g.ears.report), slices.Clone(g.voices.report)}
	var asked sync.WaitGroup
	for _, list := range [][]Engine{s.ears, s.voices} {
		for i := range list {
			if e := &list[i]; e.probe != nil {
				asked.Go(func() {
					if err := e.probe(ctx); err != nil {
						e.Available, e.Why, e.Cause = false, publicly(err), err
					}
				})
			}
		}
	}
	asked.Wait()
	return s
}
