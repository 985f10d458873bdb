package pocketsphinx

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// decoder is what an utterance needs of the library: one at a time, from one goroutine at a time.
type decoder interface {
	start(voice) error // forgets the speaker before and begins an utterance of this one
	begin() error      // begins another utterance of the same speaker
	process(samples []int16) error
	hypothesis() string // best words so far; after end, of the whole utterance
	speaking() bool     // whether the audio processed last had speech in it
	end() error
	voice() voice // of the speaker, after end
	free()
}

// pool hands out at most size decoders. Each of its size places is always in one of three hands: idle, unloaded, or taken by an utterance.
type pool struct {
	load     func() (decoder, error)
	wait     time.Duration
	log      *slog.Logger
	size     int
	idle     chan decoder
	unloaded chan struct{}
	closing  chan struct{} // closed by close
	once     sync.Once
}

// newPool loads the first decoder, so that a model which does not load shows now.
func newPool(cfg Config, load func() (decoder, error)) (*pool, error) {
	p := &pool{
		load: load, wait: cfg.Wait, log: cfg.Log, size: cfg.Decoders,
		idle: make(chan decoder, cfg.Decoders), unloaded: make(chan struct{}, cfg.Decoders), closing: make(chan struct{}),
	}
	for range cfg.Decoders {
		p.unloaded <- struct{}{}
	}
	<-p.unloaded
	first, err := p.loadOne()
	if err != nil {
		return nil, err
	}
	p.put(first)
	return p, nil
}

// take waits for a decoder: an idle one rather than a new one. It returns [ErrBusy], [ErrClosed], the context's cause, or what loading said.
func (p *pool) take(ctx context.Context) (decoder, error) {
	select {
	case <-p.closing:
		return nil, ErrClosed
	case d := <-p.idle:
		return d, nil
	default:
	}
	patience := time.NewTimer(p.wait)
	defer patience.Stop()
	select {
	case d := <-p.idle:
		return d, nil
	case <-p.unloaded:
		return p.loadOne()
	case <-patience.C:
		return nil, ErrBusy
	case <-p.closing:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// loadOne fills a place that was taken from unloaded, and gives it back when it cannot.
func (p *pool) loadOne() (decoder, error) {
	began := time.Now()
	d, err := p.load()
	if err != nil {
		p.unloaded <- struct{}{}
		return nil, err
	}
	p.log.Info("decoder loaded", "took", time.Since(began), "of", p.size)
	return d, nil
}

// put gives a healthy decoder back.
func (p *pool) put(d decoder) { p.idle <- d }

// drop frees a decoder that failed; another may be loaded in its place.
func (p *pool) drop(d decoder) {
	d.free()
	p.unloaded <- struct{}{}
}

// close waits until every decoder is back, and frees it.
func (p *pool) close() {
	p.once.Do(func() {
		close(p.closing)
		for range p.size {
			select {
			case d := <-p.idle:
				d.free()
			case <-p.unloaded:
			}
		}
	})
}
