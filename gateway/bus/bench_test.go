package bus

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

func benchBackends(b *testing.B, run func(b *testing.B, bus *Bus)) {
	for _, backend := range backends {
		b.Run(backend.name, func(b *testing.B) { run(b, open(b, backend.config(b))) })
	}
}

func BenchmarkAppend(b *testing.B) {
	benchBackends(b, func(b *testing.B, bus *Bus) {
		s, seq := bus.Session("a"), uint64(0)
		for b.Loop() {
			seq++
			if err := s.Append(b.Context(), seq, event(seq)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkAppendMany is one event each of 64 conversations, at the same time.
func BenchmarkAppendMany(b *testing.B) {
	benchBackends(b, func(b *testing.B, bus *Bus) {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				s := bus.Session(fmt.Sprint(i))
				for seq := uint64(1); seq <= uint64(b.N/64+1); seq++ {
					if err := s.Append(b.Context(), seq, event(seq)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func BenchmarkAppendAsync(b *testing.B) {
	benchBackends(b, func(b *testing.B, bus *Bus) {
		s, seq := bus.Session("a"), uint64(0)
		var wg sync.WaitGroup
		for b.Loop() {
			seq++
			wg.Add(1)
			for {
				err := s.AppendAsync(seq, event(seq), func(err error) {
					if err != nil {
						b.Error(err)
					}
					wg.Done()
				})
				if err == nil {
					break
				} else if !errors.Is(err, ErrBehind) {
					b.Fatal(err)
				}
				runtime.Gosched()
			}
		}
		wg.Wait()
	})
}

func BenchmarkSave(b *testing.B) {
	benchBackends(b, func(b *testing.B, bus *Bus) {
		s, state := bus.Session("a"), make([]byte, 4<<10)
		for b.Loop() {
			if err := s.Save(b.Context(), state); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDelete(b *testing.B) {
	benchBackends(b, func(b *testing.B, bus *Bus) {
		fill(b, bus, 1000, 100)
		i := 0
		for b.Loop() {
			if err := bus.Session(fmt.Sprint(i % 1000)).Delete(b.Context()); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
}

// fill leaves sessions with as many events each, one a message and all mixed.
func fill(b *testing.B, bus *Bus, sessions, events int) {
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			s := bus.Session(fmt.Sprint(i))
			err := s.Save(b.Context(), make([]byte, 1<<10))
			for seq := uint64(1); err == nil && seq <= uint64(events); seq++ {
				err = s.Append(b.Context(), seq, event(seq))
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// BenchmarkOpen is a start with 1,000 conversations of 100 events: until all of them are in memory.
func BenchmarkOpen(b *testing.B) {
	c := Config{Dir: b.TempDir()}
	bus := open(b, c)
	fill(b, bus, 1000, 100)
	if err := bus.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		bus, err := Open(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for s, err := range bus.Sessions(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n += len(s.Events)
		}
		if n != 100_000 {
			b.Fatalf("%d events", n)
		}
		if err := bus.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenEmpty(b *testing.B) {
	for _, c := range []Config{{}, {Dir: b.TempDir()}} {
		b.Run(fmt.Sprintf("dir=%t", c.Dir != ""), func(b *testing.B) {
			for b.Loop() {
				bus, err := Open(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				if err := bus.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
