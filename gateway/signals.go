package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"vela/gateway/bus"
	"vela/gateway/feed"
	"vela/gateway/server"
	"vela/protocol/signal"
	"vela/session"
)

// signals is the way of every signal: into the log, and from there to whoever comes back to read; round, to whoever follows
// now; and into the pipeline. Whatever brings one calls take, through, [signals.Accept] or [signals.Emit], which never wait.
type signals struct {
	run  *run
	feed *feed.Feed

	log  *slog.Logger
	kept *bus.Signals // set before anything runs
}

// intakeSource is the source of signals that are posted and name none.
const intakeSource = "http"

// open opens the log.
func (s *signals) open(ctx context.Context, b *bus.Bus) error {
	kept, err := b.Signals(ctx)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	s.kept = kept
	return nil
}

// Accept implements [server.Signals].
func (s *signals) Accept(body []byte) (string, error) {
	r, err := signal.Intake{Source: intakeSource, NewID: uuid.NewString}.Accept(body, time.Now().UnixMilli())
	s.take(r)
	return r.ID, err
}

// through takes a signal that came through a source. It says so in its metadata, so that whoever reads it knows the source's
// colour; and what is at the other end cannot say that it is another source, a session or the pipeline.
func (s *signals) through(id string, r signal.Raw) {
	for _, ours := range []string{"local:", "remote:", sourceOf(""), pipelineSource} {
		if strings.HasPrefix(r.Source, ours) {
			r.Source = id
		}
	}
	name, _ := json.Marshal(id) // a string always has a JSON
	r.Metadata = signal.Set(r.Metadata, sourceID, name)
	s.hand(id, r)
}

// sourceID is the member of a signal's metadata that has the id of its source. Nobody else says that.
const sourceID = "sourceId"

// take takes a signal that came through none.
func (s *signals) take(r signal.Raw) {
	for name := range signal.Members(r.Metadata) {
		if string(name) == sourceID {
			r.Metadata = signal.Set(r.Metadata, sourceID, json.RawMessage("null"))
			break
		}
	}
	s.hand("", r)
}

func (s *signals) hand(id string, r signal.Raw) {
	text := r.Append(nil)
	s.kept.Append(text)
	s.feed.Offer(feed.Signal{Raw: r, Through: id, Text: text})
	s.run.runner.Offer(id, r)
}

// Follow implements [server.Signals].
func (s *signals) Follow(ctx context.Context, place string) (iter.Seq2[server.LoggedSignal, error], error) {
	after := bus.ParsePlace(place)
	if place == server.Now {
		var err error
		if after, err = s.kept.End(); err != nil {
			return nil, err
		}
	}
	return func(yield func(server.LoggedSignal, error) bool) {
		for e, err := range s.kept.Follow(ctx, after) {
			if !yield(server.LoggedSignal{Place: e.Place.String(), Text: e.Text, Missed: e.Missed}, err) {
				return
			}
		}
	}, nil
}

// sourceOf is what a session's signals call their source: those of its turns, and those that its client emits.
func sourceOf(session string) string { return "session:" + session }

// of shows a session's turns. The turn is the correlation id of its signals.
func (s *signals) of(id string) func(session.Observed) {
	source := sourceOf(id)
	return func(o session.Observed) {
		r, err := signal.Envelope{
			ID: uuid.NewString(), Timestamp: time.Now().UnixMilli(), Source: source,
			CorrelationID: id + "/" + o.TurnID, Payload: o.Payload,
		}.Raw()
		if err == nil {
			err = signal.Check(r)
		}
		if err != nil {
			s.log.Warn("a turn's signal is not valid, and left out", "session", id, "error", err)
			return
		}
		s.take(r)
	}
}
