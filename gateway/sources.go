package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"vela/gateway/server"
	"vela/gateway/source"
	"vela/turn/openclaw"
)

// sources are the sources as the server shows them. It implements [server.Sources].
type sources struct {
	*source.Sources
	run *run
}

var _ server.Sources = sources{}

// sourcesFile is where added sources stand in the folder of --data: their names and addresses, and no keys.
const sourcesFile = "sources.json"

// makeSources puts the sources together. What they say goes to take.
func (g *Gateway) makeSources(r prometheus.Registerer) (sources, error) {
	cfg := source.Config{
		Take:    g.signals.through,
		Look:    g.taps.look,
		Token:   func() (string, error) { return openclaw.LocalToken(os.Getenv) },
		Hooks:   g.taps.hooks,
		Claude:  g.cfg.ClaudeCode,
		MIDI:    g.taps.device,
		Log:     g.cfg.Log.With("component", "sources"),
		Metrics: source.NewMetrics(r),
	}
	if g.cfg.Data != "" {
		file := filepath.Join(g.cfg.Data, sourcesFile)
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &cfg.Kept)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return sources{}, fmt.Errorf("gateway: --data: read the sources that were added: %w", err)
		}
		cfg.Keep = func(k source.Kept) error { return keepSources(file, k) }
	}
	return sources{source.New(cfg), g.signals.run}, nil
}

func keepSources(file string, k source.Kept) error {
	text, err := json.MarshalIndent(k, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = write(file, text)
	}
	if err != nil {
		return fmt.Errorf("gateway: keep the sources: %w", err)
	}
	return nil
}

// refusal is an error that is told to whoever asked.
type refusal struct {
	source.Mistake
	status int
}

func (r refusal) Refusal() (int, string) { return r.status, r.Error() }

// refused says what kind of mistake an error is.
func refused(err error) error {
	var m source.Mistake
	if !errors.As(err, &m) {
		return err
	}
	switch m {
	case source.ErrUnknown:
		return refusal{m, http.StatusNotFound}
	case source.ErrNotConnected, source.ErrNoModel, source.ErrNoPrompts, source.ErrBusy, source.ErrLocal, source.ErrTooMany:
		return refusal{m, http.StatusConflict}
	}
	return refusal{m, http.StatusBadRequest}
}

func shown[T any](answer T, err error) (any, error) { return answer, refused(err) }

type sourceList struct {
	Sources []source.Source `json:"sources"`
}

func (s sources) List(ctx context.Context) (any, error) {
	all, err := s.Sources.List(ctx)
	return shown(sourceList{all}, err)
}

func (s sources) Scan(ctx context.Context) (any, error) {
	all, err := s.Sources.Scan(ctx)
	return shown(sourceList{all}, err)
}

func (s sources) Watch(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for all := range s.Sources.Watch(ctx) {
			if !yield(json.Marshal(sourceList{all})) {
				return
			}
		}
	}
}

func (s sources) Add(ctx context.Context, name, url, key string) (any, error) {
	return shown(s.Sources.Add(ctx, name, url, key))
}

func (s sources) Remove(ctx context.Context, id string) error {
	if err := s.Sources.Remove(ctx, id); err != nil {
		return refused(err)
	}
	return s.run.unwire(ctx, id)
}

func (s sources) Connect(ctx context.Context, id string) (any, error) {
	return shown(s.Sources.Connect(ctx, id))
}

func (s sources) Disconnect(ctx context.Context, id string) (any, error) {
	return shown(s.Sources.Disconnect(ctx, id))
}

func (s sources) SetKey(ctx context.Context, id, key string) (any, error) {
	return shown(s.Sources.SetKey(ctx, id, key))
}

func (s sources) PasteKey(ctx context.Context, id string) (any, error) {
	return shown(s.Sources.PasteKey(ctx, id))
}

func (s sources) Choose(ctx context.Context, id, model string) (any, error) {
	return shown(s.Sources.Choose(ctx, id, model))
}

func (s sources) Prompt(ctx context.Context, id, text string) (string, error) {
	correlation, err := s.Sources.Prompt(ctx, id, text)
	return correlation, refused(err)
}

func (s sources) Stop(ctx context.Context, id string) error { return refused(s.Sources.Stop(ctx, id)) }

// Tap implements [server.Sources].
func (s sources) Tap(ctx context.Context, on bool) error {
	if !on {
		now, err := s.Sources.Disconnect(ctx, source.ClaudeCodeID)
		return tapped(now, err)
	}
	if _, err := s.Sources.Connect(ctx, source.ClaudeCodeID); err != nil {
		return refused(err)
	}
	for all := range s.Sources.Watch(ctx) {
		i := slices.IndexFunc(all, func(one source.Source) bool { return one.ID == source.ClaudeCodeID })
		if i < 0 {
			break
		}
		if all[i].State != source.Connecting {
			return tapped(all[i], nil)
		}
	}
	return cmp.Or(context.Cause(ctx), error(source.ErrOver))
}

// tapped is what is wrong with the hooks: while all is well, a source has nothing to say of itself.
func tapped(now source.Source, err error) error {
	if err == nil && now.Error != "" {
		err = source.Mistake(now.Error)
	}
	return refused(err)
}
