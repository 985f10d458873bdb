package auth_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vela/gateway/auth"
)

func admit(t *testing.T, a *auth.Authority, token string) *auth.Pass {
	t.Helper()
	p, err := a.Admit(token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func enter(t *testing.T, p *auth.Pass) (leave func()) {
	t.Helper()
	leave, err := p.Enter()
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func TestATokenHasSoManySessionsAtOnce(t *testing.T) {
	a := authority(t, "main:"+mainSecret)
	token, other := issue(t, a, auth.Rights{Sessions: 2}), issue(t, a, auth.Rights{})
	leave := enter(t, admit(t, a, token))
	enter(t, admit(t, a, token))
	if _, err := admit(t, a, token).Enter(); !errors.Is(err, auth.ErrSessions) {
		t.Errorf("a third: %v", err)
	}
	enter(t, admit(t, a, other))
	leave()
	enter(t, admit(t, a, token))
}

func TestATokenHasAsManyStreamsAsSessions(t *testing.T) {
	a := authority(t, "main:"+mainSecret)
	token := issue(t, a, auth.Rights{})
	enter(t, admit(t, a, token)) // which takes none of them
	leave, err := admit(t, a, token).Watch()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admit(t, a, token).Watch(); !errors.Is(err, auth.ErrStreams) {
		t.Errorf("a second: %v", err)
	}
	leave()
	if _, err := admit(t, a, token).Watch(); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

func TestATokenHasSoMuchAudioInAll(t *testing.T) {
	a := authority(t, "main:"+mainSecret)
	token := issue(t, a, auth.Rights{Minutes: 1})
	first, second := admit(t, a, token), admit(t, a, token)
	for _, c := range []struct {
		pass *auth.Pass
		take time.Duration
		ok   bool
	}{
		{first, 40 * time.Second, true},
		{second, 21 * time.Second, false},
		{second, 20 * time.Second, true},
		{first, time.Millisecond, false},
		{admit(t, a, token), time.Millisecond, false},
		{admit(t, a, issue(t, a, auth.Rights{Minutes: 1})), time.Minute, true},
	} {
		if ok := c.pass.Take(c.take); ok != c.ok {
			t.Errorf("%s taken: %v, want %v", c.take, ok, c.ok)
		}
	}
}

func TestLimitsHoldInACrowd(t *testing.T) {
	a := authority(t, "main:"+mainSecret)
	token := issue(t, a, auth.Rights{Sessions: 10, Minutes: 1})
	var entered, taken atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			p, err := a.Admit(token)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := p.Enter(); err == nil {
				entered.Add(1)
			}
			if p.Take(time.Second) {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if entered.Load() != 10 || taken.Load() != 60 {
		t.Errorf("%d sessions and %d s of audio, want 10 and 60", entered.Load(), taken.Load())
	}
}

func TestASessionOutlivesItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t, "main:"+mainSecret)
		token := issue(t, a, auth.Rights{TTL: time.Minute, Sessions: 5, Minutes: 2})
		pass := admit(t, a, token)
		leave := enter(t, pass)
		time.Sleep(time.Hour)
		enter(t, admit(t, a, issue(t, a, auth.Rights{}))) // with which what others have used may be forgotten

		if !pass.Take(time.Minute) {
			t.Error("the running session has no audio any more")
		}
		back := admit(t, a, token) // to take up the session that still runs
		if _, err := back.Enter(); !errors.Is(err, auth.ErrExpired) {
			t.Errorf("an expired token starts a session: %v", err)
		}
		if !back.Take(time.Minute) || back.Take(time.Second) {
			t.Error("what was used is forgotten")
		}
		leave()
		if _, err := a.Admit(token); !errors.Is(err, auth.ErrExpired) {
			t.Errorf("after its last session: %v", err)
		}
	})
}

func TestUsageIsForgottenWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t, "main:"+mainSecret)
		for range 100 {
			enter(t, admit(t, a, issue(t, a, auth.Rights{})))()
		}
		time.Sleep(time.Hour)
		enter(t, admit(t, a, issue(t, a, auth.Rights{})))
		if n := a.Remembered(); n != 1 {
			t.Errorf("%d tokens are remembered, want 1", n)
		}
	})
}
