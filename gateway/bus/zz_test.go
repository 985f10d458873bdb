package bus

import (
	"fmt"
	"github.com/nats-io/nats.go/jetstream"
	"os"
	"testing"
	"time"
)

func BenchmarkZZ(b *testing.B) {
	c := Config{Dir: b.TempDir()}
	bus := open(b, c)
	fill(b, bus, 1000, 100)
	bus.Close()
	for range 3 {
		t0 := time.Now()
		e, _ := openEmbedded(c.Dir, bus.log)
		e.suspect = func() {}
		t01 := time.Now()
		e.close()
		t02 := time.Now()
		bus, _ = Open(b.Context(), c)
		t1 := time.Now()
		bus.each(b.Context(), stateStream, func(m jetstream.Msg, _ uint64) error { return nil })
		t2 := time.Now()
		bus.each(b.Context(), eventStream, func(m jetstream.Msg, _ uint64) error { return nil })
		t3 := time.Now()
		bus.Close()
		t4 := time.Now()
		fmt.Fprintln(os.Stderr, t01.Sub(t0), t02.Sub(t01), "open", t1.Sub(t02), "states", t2.Sub(t1), "events", t3.Sub(t2), "close", t4.Sub(t3))
	}
	for range 3 {
		t0 := time.Now()
		bus, _ = Open(b.Context(), Config{})
		t1 := time.Now()
		bus.Close()
		fmt.Fprintln(os.Stderr, t1.Sub(t0), time.Since(t1))
	}
}
