package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// script is a connection that says its messages, and then ends with an error.
type script struct {
	says   []string
	ends   error // nil: it waits
	closed *int
}

func (s *script) Next(ctx context.Context) ([]byte, error) {
	if len(s.says) > 0 {
		said := s.says[0]
		s.says = s.says[1:]
		return []byte(said), nil
	}
	if s.ends == nil {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return nil, s.ends
}

func (s *script) Close() error { *s.closed++; return nil }

type refused struct{ error }

func (refused) Refused() bool { return true }

var errBroken = errors.New("broken at 10.0.0.1")

func TestALinkIsTakenUpAgain(t *testing.T) {
	type try struct {
		fails error // of the dial
		says  string
		ends  error
	}
	for name, x := range map[string]struct {
		tries []try // the last one again and again
		want  []string
	}{
		"an end": {[]try{{says: "a b", ends: io.EOF}}, []string{"0 connecting", "0 connected", "0 < a", "0 < b", "0 disconnected"}},
		"it breaks, and is there again": {
			[]try{{says: "a", ends: errBroken}, {says: "b", ends: io.EOF}},
			[]string{"0 connecting", "0 connected", "0 < a", "0 connecting: The connection broke; it is tried again.", "1 connecting", "1 connected", "1 < b", "1 disconnected"},
		},
		"a refusal is not tried again": {
			[]try{{fails: refused{errors.New("The key is wrong.")}}}, []string{"0 connecting", "0 error: The key is wrong."},
		},
		"a refusal after the beginning": {
			[]try{{says: "a", ends: fmt.Errorf("x: %w", refused{errors.New("Not any more.")})}}, []string{"0 connecting", "0 connected", "0 < a", "0 error: Not any more."},
		},
		"ten times, longer and longer": {
			[]try{{fails: errBroken}},
			[]string{"0 connecting", "1 connecting", "3 connecting", "7 connecting", "15 connecting", "31 connecting", "61 connecting", "91 connecting", "121 connecting", "151 connecting", "181 connecting",
				"181 error: The source cannot be reached. Is it running, and is the address right?"},
		},
		"a connection begins the count anew": {
			[]try{{fails: errBroken}, {fails: errBroken}, {ends: errBroken}, {fails: errBroken}, {ends: io.EOF}},
			[]string{"0 connecting", "1 connecting", "3 connecting", "3 connected", "3 connecting: The connection broke; it is tried again.", "4 connecting", "6 connecting", "6 connected", "6 disconnected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				begin, tries, dials, closed := time.Now(), x.tries, 0, 0
				say := func(what string) { got = append(got, fmt.Sprint(int(time.Since(begin).Seconds()), " ", what)) }
				Link{
					Dial: func(context.Context) (Conn, error) {
						now := tries[0]
						if len(tries) > 1 {
							tries = tries[1:]
						}
						if now.fails != nil {
							return nil, now.fails
						}
						dials++
						return &script{strings.Fields(now.says), now.ends, &closed}, nil
					},
					Hear: func(m []byte) { say("< " + string(m)) },
					Show: func(s State, why string) {
						if strings.Contains(why, "10.0.0.1") {
							t.Errorf("it shows an address: %q", why)
						}
						if why == "The source cannot be reached yet; it is tried again." {
							return // before each of the waits
						}
						if why != "" {
							why = ": " + why
						}
						say(string(s) + why)
					},
				}.Run(t.Context())
				if !slices.Equal(got, x.want) {
					t.Errorf("got  %q\nwant %q", got, x.want)
				}
				if closed != dials {
					t.Errorf("%d of %d connections were closed", closed, dials)
				}
			})
		})
	}
}

// A link ends with its context: while it connects, while it hears, and while it waits.
func TestALinkEndsWithItsContext(t *testing.T) {
	for name, dial := range map[string]func(closed *int) func(context.Context) (Conn, error){
		"connecting": func(*int) func(context.Context) (Conn, error) {
			return func(ctx context.Context) (Conn, error) { <-ctx.Done(); return nil, context.Cause(ctx) }
		},
		"hearing": func(closed *int) func(context.Context) (Conn, error) {
			return func(context.Context) (Conn, error) { return &script{closed: closed}, nil }
		},
		"waiting": func(*int) func(context.Context) (Conn, error) {
			return func(context.Context) (Conn, error) { return nil, errBroken }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closed := 0
				var last State
				ctx, cancel := context.WithCancel(t.Context())
				var wait sync.WaitGroup
				wait.Go(func() {
					Link{Dial: dial(&closed), Hear: func([]byte) {}, Show: func(s State, _ string) { last = s }}.Run(ctx)
				})
				synctest.Wait()
				cancel()
				wait.Wait()
				if last != Disconnected || name == "hearing" && closed != 1 {
					t.Errorf("at the end it is %s, %d closed", last, closed)
				}
			})
		})
	}
}
