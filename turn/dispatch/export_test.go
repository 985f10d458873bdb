package dispatch

import (
	"errors"

	"github.com/fsnotify/fsnotify"
)

// Parts that the tests look at from outside.
var (
	DecodeSignal = decodeSignal
	Unwrap       = unwrap
	ErrNotYet    = errNotYet
	ErrInvalid   = errInvalid
	AnswerText   = answerText
	ParsePath    = parsePath
	Pieces       = pieces
)

// MaxArtifact is the most bytes that an artifact may have.
const MaxArtifact = maxArtifact

func deaf() (*fsnotify.Watcher, error) { return nil, errors.New("no watches are left") }

// PollOnly takes the system's word on changes away, so that time is all that the engine waits for.
func (e *Engine) PollOnly() *Engine {
	e.notify = deaf
	return e
}

// PollOnly does the same for a responder.
func (r Responder) PollOnly() Responder {
	r.notify = deaf
	return r
}

// Suites is how many suites the engine remembers.
func (e *Engine) Suites() int {
	e.suites.mu.Lock()
	defer e.suites.mu.Unlock()
	return len(e.suites.running)
}
