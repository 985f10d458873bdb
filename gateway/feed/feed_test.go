package feed_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vela/gateway/feed"
	"vela/protocol"
	"vela/protocol/signal"
)

func of(typ, source, through string) feed.Signal {
	r := signal.Raw{ID: typ + "/" + source, Type: typ, Source: source, Payload: []byte("{}")}
	return feed.Signal{Raw: r, Through: through, Text: r.Append(nil)}
}

// some is a signal whose JSON has that length.
func some(n int, id string) feed.Signal {
	return feed.Signal{Raw: signal.Raw{ID: id, Type: "x", Source: "s"}, Text: make([]byte, n)}
}

var plenty = feed.Bounds{Signals: 100, Bytes: 1 << 20}

// taken is what waits, in order.
func taken(s *feed.Subscription) (ids []string, missed uint64) {
	for {
		g, m, ok := s.Next()
		missed += m
		if !ok {
			return ids, missed
		}
		ids = append(ids, g.ID)
	}
}

func TestFilters(t *testing.T) {
	all := []feed.Signal{
		of("tool_call", "adapter:tap", "local:claude-code"), of("tool_result", "adapter:tap", "local:claude-code"),
		of("tool_call", "session:1", ""), of("user.click", "session:1", ""), of("user.move", "http", ""),
	}
	for name, x := range map[string]struct {
		filters []feed.Filter
		want    []string
	}{
		"none":                            {nil, nil},
		"all":                             {[]feed.Filter{{}}, []string{"tool_call/adapter:tap", "tool_result/adapter:tap", "tool_call/session:1", "user.click/session:1", "user.move/http"}},
		"a type":                          {[]feed.Filter{{Types: []string{"user.click"}}}, []string{"user.click/session:1"}},
		"types that begin so":             {[]feed.Filter{{Types: []string{"user.*"}}}, []string{"user.click/session:1", "user.move/http"}},
		"a source by its id":              {[]feed.Filter{{Sources: []string{"local:claude-code"}}}, []string{"tool_call/adapter:tap", "tool_result/adapter:tap"}},
		"a source by its own name":        {[]feed.Filter{{Sources: []string{"adapter:tap"}}}, []string{"tool_call/adapter:tap", "tool_result/adapter:tap"}},
		"sources that begin so":           {[]feed.Filter{{Sources: []string{"local:*", "ht*"}}}, []string{"tool_call/adapter:tap", "tool_result/adapter:tap", "user.move/http"}},
		"a type and a source":             {[]feed.Filter{{Types: []string{"tool_call"}, Sources: []string{"session:1"}}}, []string{"tool_call/session:1"}},
		"one filter or another, but once": {[]feed.Filter{{Types: []string{"user.*"}}, {Types: []string{"user.move"}}, {Sources: []string{"http"}}}, []string{"user.click/session:1", "user.move/http"}},
		"a star in the middle is none":    {[]feed.Filter{{Types: []string{"user.*k"}}}, nil},
		"no source is not that of nobody": {[]feed.Filter{{Sources: []string{"x*"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var f feed.Feed
			s := f.Subscribe(plenty, nil)
			defer s.Close()
			for _, filter := range x.filters {
				if err := s.Add(filter); err != nil {
					t.Fatal(err)
				}
			}
			for _, g := range all {
				f.Offer(g)
			}
			if got, _ := taken(s); !slices.Equal(got, x.want) {
				t.Errorf("got %q, want %q", got, x.want)
			}
		})
	}
}

func TestFiltersAreTakenBack(t *testing.T) {
	var f feed.Feed
	s := f.Subscribe(plenty, nil)
	defer s.Close()
	for _, filter := range []feed.Filter{{Types: []string{"a", "b"}}, {Types: []string{"a", "b", "a"}}, {Types: []string{"b"}, Sources: []string{"s"}}} {
		if err := s.Add(filter); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		remove feed.Filter
		want   []string
	}{
		{feed.Filter{Types: []string{"a"}}, []string{"a/s", "b/s"}},                // is none of them
		{feed.Filter{Types: []string{"b", "a", "b"}}, []string{"b/s"}},             // in another order
		{feed.Filter{Types: []string{"b"}, Sources: []string{"s"}}, []string(nil)}, // the last one
	} {
		if err := s.Remove(x.remove); err != nil {
			t.Fatal(err)
		}
		f.Offer(of("a", "s", ""))
		f.Offer(of("b", "s", ""))
		if got, _ := taken(s); !slices.Equal(got, x.want) {
			t.Errorf("without %v: %q, want %q", x.remove, got, x.want)
		}
	}
	for i := range 3 {
		if err := s.Add(feed.Filter{Types: []string{fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(feed.Filter{}); err != nil {
		t.Fatal(err)
	}
	f.Offer(of("1", "s", ""))
	if got, _ := taken(s); got != nil {
		t.Errorf("after all were taken back: %q", got)
	}
}

func TestFiltersHaveBounds(t *testing.T) {
	var f feed.Feed
	s := f.Subscribe(plenty, nil)
	defer s.Close()
	long := make([]string, feed.MaxNames+1)
	for i := range long {
		long[i] = fmt.Sprint("t", i)
	}
	for name, filter := range map[string]feed.Filter{
		"too many types": {Types: long}, "too many sources": {Sources: long}, "an empty type": {Types: []string{""}}, "an empty source": {Sources: []string{""}},
		"a long type": {Types: []string{strings.Repeat("x", 129)}}, "a long source": {Sources: []string{strings.Repeat("x", 257)}},
	} {
		for what, err := range map[string]error{"Add": s.Add(filter), "Remove": s.Remove(filter), "Check": filter.Check()} {
			var coded interface{ Code() protocol.Code }
			if !errors.As(err, &coded) || coded.Code() != protocol.CodeInvalidMessage {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	if err := s.Add(feed.Filter{Types: long[1:], Sources: []string{strings.Repeat("x", 256)}}); err != nil {
		t.Errorf("as much as may be: %v", err)
	}
	for i := range feed.MaxFilters - 1 {
		if err := s.Add(feed.Filter{Types: long[i : i+1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add(feed.Filter{Types: long[:1]}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if err := s.Add(feed.Filter{}); err == nil {
		t.Error("more filters than may be")
	}
}

// Who is too slow loses the oldest, is told how many, and nobody else notices.
func TestWhoIsTooSlowLosesTheOldest(t *testing.T) {
	r := prometheus.NewRegistry()
	f := feed.New(feed.NewMetrics(r))
	slow, quick := f.Subscribe(feed.Bounds{Signals: 3, Bytes: 100}, nil), f.Subscribe(plenty, nil)
	for _, s := range []*feed.Subscription{slow, quick} {
		if err := s.Add(feed.Filter{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		f.Offer(some(10, fmt.Sprint(i)))
	}
	if got, missed := taken(slow); fmt.Sprint(got) != "[2 3 4]" || missed != 2 {
		t.Errorf("%q, and %d missed", got, missed)
	}
	f.Offer(some(60, "a"))
	f.Offer(some(60, "b"))
	f.Offer(some(40, "c"))
	f.Offer(some(500, "longer than all that may wait"))
	if got, missed := taken(slow); fmt.Sprint(got) != "[longer than all that may wait]" || missed != 3 {
		t.Errorf("%q, and %d missed", got, missed)
	}
	f.Offer(some(1, "z"))
	if got, missed := taken(slow); fmt.Sprint(got) != "[z]" || missed != 0 {
		t.Errorf("%q, and %d missed", got, missed)
	}
	if got, missed := taken(quick); len(got) != 10 || missed != 0 {
		t.Errorf("the quick one got %q, and missed %d", got, missed)
	}
	slow.Close()
	if got := counted(t, r); got != "vela_signal_subscribers 1, vela_signals_missed_total 5" {
		t.Error(got)
	}
	quick.Close()
	if f.Followed() {
		t.Error("somebody still follows")
	}
}

// A subscriber is woken when there is something and was nothing, not for each signal.
func TestWaking(t *testing.T) {
	var f feed.Feed
	woken := 0
	s := f.Subscribe(plenty, func() { woken++ })
	defer s.Close()
	if err := s.Add(feed.Filter{Types: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	f.Offer(of("y", "s", ""))
	for want := 1; want < 4; want++ {
		f.Offer(of("x", "s", ""))
		f.Offer(of("x", "s", ""))
		if woken != want {
			t.Errorf("woken %d times, want %d", woken, want)
		}
		taken(s)
	}
}

func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f feed.Feed
		s := f.Subscribe(plenty, nil)
		defer s.Close()
		if err := s.Add(feed.Filter{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var got []string
		over := make(chan error)
		go func() {
			for {
				g, _, err := s.Wait(ctx)
				if err != nil {
					over <- err
					return
				}
				got = append(got, g.ID)
			}
		}()
		for i := range 10 {
			f.Offer(some(1, fmt.Sprint(i)))
			if i%3 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		why := errors.New("enough")
		cancel(why)
		if err := <-over; !errors.Is(err, why) || fmt.Sprint(got) != "[0 1 2 3 4 5 6 7 8 9]" {
			t.Errorf("%v after %q", err, got)
		}
	})
}

// Whoever comes and goes while signals come gets them in order, loses none that fit, and leaves nothing behind.
func TestManyComeAndGo(t *testing.T) {
	var f feed.Feed
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				s := f.Subscribe(feed.Bounds{Signals: 8, Bytes: 1 << 10}, func() {})
				if err := s.Add(feed.Filter{Types: []string{"x"}}); err != nil {
					t.Error(err)
				}
				last := -1
				for range 20 {
					g, missed, ok := s.Next()
					if !ok {
						runtime.Gosched()
						continue
					}
					var n int
					if _, err := fmt.Sscan(g.ID, &n); err != nil || last >= 0 && n != last+int(missed)+1 {
						t.Errorf("%d follows %d, and %d were missed: %v", n, last, missed, err)
					}
					last = n
				}
				s.Close()
			}
		})
	}
	for i := range 5000 {
		f.Offer(some(10, fmt.Sprint(i)))
	}
	cancel()
	all.Wait()
	// A goroutine that has said that it is done is there for a moment more.
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); runtime.Gosched() {
	}
	if f.Followed() || runtime.NumGoroutine() > before {
		t.Errorf("%d goroutines, %d before; followed: %t", runtime.NumGoroutine(), before, f.Followed())
	}
}

func counted(t *testing.T, r *prometheus.Registry) string {
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			lines = append(lines, fmt.Sprintf("%s %v", f.GetName(), m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	return strings.Join(lines, ", ")
}
