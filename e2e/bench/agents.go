package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"vela/e2e/bench/proc"
)

const (
	agentTurns = 200
	agentRate  = 50 // deltas a second of each
	agentWarm  = 50 // deltas of each before the measurement begins
)

// agents measures the gateway's own share of an agent's answer: from when a model (bench/model) writes a piece of it to
// when the client has it, with 200 answers at once. The floor is a bare fan-out of the same pieces (bench/bare, fan.go).
func (b *bench) agents() error {
	pieces := agentWarm + agentRate*int(b.each/time.Second+2) // the last ones come after the measurement
	model, err := proc.Start(b.model, "-rate", fmt.Sprint(agentRate), "-pieces", fmt.Sprint(pieces))
	if err != nil {
		return err
	}
	defer model.Stop()
	file, err := agentFile(model.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(file)) }()
	// A round's sessions are gone before the next one begins, and take none of its memory.
	vela, err := proc.Start(b.vela, "serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--config", file, "--turns", "agent", "--resume", "1s")
	if err != nil {
		return err
	}
	defer vela.Stop()
	bare, err := proc.Start(b.bare, "-model", model.Addr)
	if err != nil {
		return err
	}
	defer bare.Stop()

	var velas, bares fanned
	var ratio []float64
	for range b.rounds {
		w, err := b.fanOf(bare, pieces, submitFrame)
		if err != nil {
			return err
		}
		v, err := b.fanOf(vela, pieces, startFrame, submitFrame)
		if err != nil {
			return err
		}
		velas.add(v)
		bares.add(w)
		ratio = append(ratio, median(v.each)/median(w.each))
	}
	fmt.Printf("agents: a delta from its model to its client, %d turns of %d deltas a second\n", agentTurns, agentRate)
	fmt.Printf("  bare   %s\n  vela   %s\n", &bares, &velas)
	fmt.Printf("  ratio  %8.2f times the bare fan-out's CPU (aim: at most 3; p99 under 5 ms, none lost)\n\n", median(ratio))
	if velas.lost > 0 {
		return errLost
	}
	return nil
}

var (
	startFrame  = frame(`{"type":"session.start","payload":{}}`)
	submitFrame = frame(`{"type":"input_text.submit","payload":{"text":"Go on."}}`)
)

// agentFile is a vela.yaml whose agent is the model at addr.
func agentFile(addr string) (string, error) {
	dir, err := os.MkdirTemp("", "vela-bench-")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "vela.yaml")
	return name, os.WriteFile(name, fmt.Appendf(nil, "agents:\n  bench:\n    kind: openai\n    url: http://%s/v1\n    model: bench-1\n", addr), 0o600)
}

// fanned is what rounds have measured, a value each.
type fanned struct {
	p50, p99 []float64 // ms
	cores    []float64
	each     []float64 // µs of CPU for each delta
	lost     int       // in all rounds
}

func (f *fanned) add(g fanned) {
	f.p50, f.p99 = append(f.p50, g.p50...), append(f.p99, g.p99...)
	f.cores, f.each, f.lost = append(f.cores, g.cores...), append(f.each, g.each...), f.lost+g.lost
}

func (f *fanned) String() string {
	return fmt.Sprintf("p50 %6.2f ms, p99 %6.2f ms, %5.2f cores, %5.1f µs of CPU each, %d lost",
		median(f.p50), median(f.p99), median(f.cores), median(f.each), f.lost)
}

// fanOf has 200 answers at once, each on a connection of its own, which begins with the given frames.
func (b *bench) fanOf(p *proc.Process, pieces int, first ...[]byte) (fanned, error) {
	var readers, warm sync.WaitGroup
	var measuring atomic.Bool
	all := make([]listener, agentTurns)
	warm.Add(agentTurns)
	for i := range all {
		c, err := dial(p.Addr, "", version2)
		if err != nil {
			return fanned{}, err
		}
		defer c.Close()
		l := &all[i]
		l.took = make([]time.Duration, 0, pieces)
		readers.Go(func() {
			warmed := sync.OnceFunc(warm.Done)
			defer warmed()
			if _, err := c.Write(bytes.Join(first, nil)); err != nil {
				l.err = err
				return
			}
			l.err = l.listen(c, pieces, &measuring, warmed)
		})
	}
	warm.Wait()
	cpu, from := p.CPU(), time.Now()
	measuring.Store(true)
	time.Sleep(b.each)
	measuring.Store(false)
	used, window := p.CPU()-cpu, time.Since(from)
	readers.Wait()

	var took []time.Duration
	lost := 0
	for _, l := range all {
		if l.err != nil {
			return fanned{}, l.err
		}
		took = append(took, l.took...)
		lost += l.lost
	}
	return fanned{
		p50: []float64{ms(percentile(took, 0.5))}, p99: []float64{ms(percentile(took, 0.99))},
		cores: []float64{used.Seconds() / window.Seconds()},
		each:  []float64{float64(used.Microseconds()) / float64(len(took))},
		lost:  lost,
	}, nil
}

// listener is one client.
type listener struct {
	took []time.Duration // while it is measured
	lost int
	err  error
}

var (
	deltaType     = []byte(`{"type":"response.text.delta"`)
	errorType     = []byte(`{"type":"error"`)
	completedType = []byte(`{"type":"response.completed"`)
	deltaText     = []byte(`"text":"`)
)

// listen reads until the answer's last piece. What comes after one that did not come counts it as lost.
func (l *listener) listen(c *conn, pieces int, measuring *atomic.Bool, warmed func()) error {
	for next := 0; next < pieces; {
		m, err := c.next()
		if err != nil {
			return err
		}
		now := time.Now()
		switch {
		case bytes.HasPrefix(m, deltaType):
		case bytes.HasPrefix(m, errorType):
			return fmt.Errorf("an agent's turn failed: %s", m)
		case bytes.HasPrefix(m, completedType):
			l.lost += pieces - next
			return nil
		default:
			continue
		}
		number, written, err := stamp(m)
		if err != nil {
			return err
		}
		l.lost += number - next
		if next = number + 1; next == agentWarm {
			warmed()
		}
		if measuring.Load() {
			l.took = append(l.took, now.Sub(written))
		}
	}
	return nil
}

var (
	errStamp = errors.New("a delta without its number and its time")
	errLost  = errors.New("the gateway has lost deltas")
)

// stamp finds the number of a delta and when its model wrote it.
func stamp(m []byte) (int, time.Time, error) {
	_, text, _ := bytes.Cut(m, deltaText)
	number, rest, _ := bytes.Cut(text, []byte(":"))
	micros, _, _ := bytes.Cut(rest, []byte(" "))
	n, errN := strconv.Atoi(string(number))
	at, errAt := strconv.ParseInt(string(micros), 10, 64)
	if errN != nil || errAt != nil {
		return 0, time.Time{}, errStamp
	}
	return n, time.UnixMicro(at), nil
}
