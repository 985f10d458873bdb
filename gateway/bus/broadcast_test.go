package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"
)

func listen(t testing.TB, ctx context.Context, b *Bus) iter.Seq2[[]byte, error] {
	t.Helper()
	commands, err := b.Commands(ctx)
	must(t, err)
	return commands
}

func TestCommandsReachAllWhoListen(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		must(t, b.Broadcast([]byte("missed")))
		one, other := listen(t, soon(t), b), listen(t, soon(t), b)
		for n := range 100 {
			must(t, b.Broadcast(fmt.Append(nil, n)))
		}
		for _, commands := range []iter.Seq2[[]byte, error]{one, other} {
			n := 0
			for text, err := range commands {
				must(t, err)
				if string(text) != fmt.Sprint(n) {
					t.Fatalf("%q, want %d", text, n)
				}
				if n++; n == 100 {
					break
				}
			}
		}
	})
}

// Who does not listen fast enough hears no more, and holds up nobody.
func TestASlowListenerIsLeftBehind(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		slow, quick := listen(t, soon(t), b), listen(t, soon(t), b)
		heard := make(chan error, 1)
		paced := make(chan struct{}, 1)
		go func() {
			n := 0
			for _, err := range quick {
				if err != nil {
					heard <- err
					return
				}
				if n++; n%1000 == 0 {
					paced <- struct{}{}
				}
				if n == 3*maxUnheard/1000*1000 {
					break
				}
			}
			heard <- nil
		}()
		for n := range 3 * maxUnheard / 1000 * 1000 {
			must(t, b.Broadcast([]byte("x")))
			if (n+1)%1000 == 0 {
				select {
				case <-paced:
				case err := <-heard:
					t.Fatal(err)
				}
			}
		}
		must(t, <-heard)
		var last error
		for _, err := range slow {
			last = err
		}
		if !errors.Is(last, ErrBehind) {
			t.Errorf("a listener that did not listen ends with %v", last)
		}
	})
}

func TestListeningEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, c Config, _ bool) {
		b := open(t, c)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		ends := func(commands iter.Seq2[[]byte, error]) (last error) {
			for _, err := range commands {
				last = err
			}
			return last
		}
		commands := listen(t, ctx, b)
		time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
		if err := ends(commands); !errors.Is(err, why) {
			t.Errorf("a listener whose context is done: %v", err)
		}
		if _, err := b.Commands(ctx); !errors.Is(err, why) {
			t.Errorf("listening with a context that is done: %v", err)
		}
		commands = listen(t, soon(t), b)
		time.AfterFunc(20*time.Millisecond, func() { b.Close() })
		if err := ends(commands); !errors.Is(err, ErrClosed) {
			t.Errorf("a listener of a bus that closes: %v", err)
		}
		if _, err := b.Commands(soon(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("listening to a closed bus: %v", err)
		}
		if err := b.Broadcast(nil); !errors.Is(err, ErrClosed) {
			t.Errorf("a broadcast on a closed bus: %v", err)
		}
	})
}
