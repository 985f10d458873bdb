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
	after  time.Duration // before its first message
	says   []string
	ends   error // nil: it waits
	left   error
	closed *int
}

func (s *script) Next(ctx context.Context) ([]byte, error) {
	time.Sleep(s.after) // in fake time
	s.after = 0
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

func (s *script) Close() error { *s.closed++; return s.left }

type refused struct{ error }

func (refused) Refused() bool { return true }

var errBroken = errors.New("broken at 10.0.0.1")

func TestALinkIsTakenUpAgain(t *testing.T) {
	type try struct {
		fails error // of the dial
		after time.Duration
		says  string
		ends  error
		left  error // of the close
	}
	for name, x := range map[string]struct {
		tries []try // the last one again and again
		want  []string
	}{
		"an end": {[]try{{says: "a b", ends: io.EOF}}, []string{"0 connecting", "0 dial", "0 connected", "0 < a", "0 < b", "0 disconnected"}},
		"it breaks, and is there again": {
			[]try{{says: "a", ends: errBroken}, {says: "b", ends: io.EOF}},
			[]string{"0 connecting", "0 dial", "0 connected", "0 < a", "0 connecting: The connection broke; it is tried again.", "1 dial", "1 connected", "1 < b", "1 disconnected"},
		},
		"it says why": {
			[]try{{says: "a", ends: fmt.Errorf("x: %w", fault{words: "Too long."})}, {ends: io.EOF}},
			[]string{"0 connecting", "0 dial", "0 connected", "0 < a", "0 connecting: Too long. It is tried again.", "1 dial", "1 connected", "1 disconnected"},
		},
		"a refusal is not tried again": {
			[]try{{fails: refused{errors.New("The key is wrong.")}}}, []string{"0 connecting", "0 dial", "0 error: The key is wrong."},
		},
		"a refusal after the beginning": {
			[]try{{says: "a", ends: fmt.Errorf("x: %w", refused{errors.New("Not any more.")})}}, []string{"0 connecting", "0 dial", "0 connected", "0 < a", "0 error: Not any more."},
		},
		"ten times, longer and longer": {
			[]try{{fails: errBroken}},
			[]string{"0 connecting", "0 dial", "1 dial", "3 dial", "7 dial", "15 dial", "31 dial", "61 dial", "91 dial", "121 dial", "151 dial", "181 dial",
				"181 error: The source cannot be reached. Is it running, and is the address right?"},
		},
		"a connection begins the count anew": {
			[]try{{fails: errBroken}, {fails: errBroken}, {ends: errBroken}, {fails: errBroken}, {ends: io.EOF}},
			[]string{"0 connecting", "0 dial", "1 dial", "3 dial", "3 connected", "3 connecting: The connection broke; it is tried again.", "4 dial", "6 dial", "6 connected", "6 disconnected"},
		},
		"one that restarts all the time says so": {
			[]try{{ends: errBroken}, {ends: errBroken}, {ends: errBroken}, {ends: errBroken}, {ends: io.EOF}},
			[]string{
				"0 connecting", "0 dial", "0 connected", "0 connecting: The connection broke; it is tried again.",
				"1 dial", "1 connected", "1 connecting: The connection broke; it is tried again.",
				"2 dial", "2 connected", "2 connecting: " + unsteady(3), "3 dial", "3 connected: " + unsteady(3), "3 connecting: " + unsteady(4), "4 dial", "4 connected: " + unsteady(4), "4 disconnected",
			},
		},
		"until a connection lasts": {
			[]try{{ends: errBroken}, {ends: errBroken}, {ends: errBroken}, {after: lasting, says: "a", ends: errBroken}, {ends: io.EOF}},
			[]string{
				"0 connecting", "0 dial", "0 connected", "0 connecting: The connection broke; it is tried again.",
				"1 dial", "1 connected", "1 connecting: The connection broke; it is tried again.",
				"2 dial", "2 connected", "2 connecting: " + unsteady(3), "3 dial", "3 connected: " + unsteady(3), "13 connected", "13 < a", "13 connecting: The connection broke; it is tried again.",
				"14 dial", "14 connected", "14 disconnected",
			},
		},
		"what its end leaves behind": {
			[]try{{ends: io.EOF, left: fault{words: "Something is left."}}}, []string{"0 connecting", "0 dial", "0 connected", "0 disconnected: Something is left."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				begin, tries, dials, closed := time.Now(), x.tries, 0, 0
				say := func(what string) { got = append(got, fmt.Sprint(int(time.Since(begin).Seconds()), " ", what)) }
				Link{
					Dial: func(context.Context) (Conn, error) {
						say("dial")
						now := tries[0]
						if len(tries) > 1 {
							tries = tries[1:]
						}
						if now.fails != nil {
							return nil, now.fails
						}
						dials++
						return &script{now.after, strings.Fields(now.says), now.ends, now.left, &closed}, nil
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
