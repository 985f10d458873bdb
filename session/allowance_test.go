package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"vela/session"
)

// minutes is a [session.Allowance].
type minutes struct{ left time.Duration }

// Take implements [session.Allowance].
func (m *minutes) Take(d time.Duration) bool {
	if d > m.left {
		return false
	}
	m.left -= d
	return true
}

func TestAudioIsTakenFromTheAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := agentBacked(recogniser(counts), says("yes"))
		allowance := &minutes{left: 50 * time.Millisecond}
		cfg.Allowance = allowance
		c := connect(t, cfg)
		for _, want := range [][]string{{"listening", "? heard 1"}, {"? heard 2"}, {"! audio_too_long"}, nil} {
			c.send(piece)
			c.expect(want...)
		}
		if allowance.left != 10*time.Millisecond {
			t.Errorf("%s are left", allowance.left)
		}
		c.send(commit) // what came before counts
		c.expect(". heard 2", "thinking", "speaking", "> yes", "completed", "idle")
		c.send(piece)
		c.expect("listening", "! audio_too_long")
		c.send(cancel, trigger) // and the session lives on
		c.expect(append([]string{"idle"}, fixedTurn...)...)
	})
}

func TestAudioThatIsNotTakenCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowance := &minutes{left: time.Hour}
		cfg := agentBacked(nil, nil)
		cfg.Transcriber, cfg.Allowance = nil, allowance
		c := connect(t, cfg)
		c.send(piece) // nobody hears it
		c.expect("listening", "! speech_unavailable")
		cfg.MaxAudio = time.Millisecond
		c = connect(t, cfg)
		c.send(piece) // more than a turn takes
		if allowance.left != time.Hour {
			t.Errorf("%s are left of an hour", allowance.left)
		}
	})
}

// Who resumes pays from then on. Before that, a session that a restart has brought back knows nobody's minutes.
func TestWhoResumesPays(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var m memory
			cfg := m.config()
			before, now := &minutes{left: time.Hour}, &minutes{left: 20 * time.Millisecond}
			cfg.Allowance, cfg.Transcriber = before, recogniser(counts)
			c := start(t, cfg)
			c.join()
			if restarted {
				c.cancel(session.ErrShutdown)
				<-c.ended
				c = m.runAgain(t, func(cfg *session.Config) { cfg.Transcriber = recogniser(counts) })
			}
			c.resume(session.Hello{Token: token, Allowance: now})
			c.next()
			c.send(piece)
			c.expect("listening", "? heard 1")
			c.send(piece)
			c.expect("! audio_too_long")
			if before.left != time.Hour || now.left != 0 {
				t.Errorf("restarted: %v; %s are left of before, %s of now", restarted, before.left, now.left)
			}
		})
	}
}

// Where several people speak in one session, each pays for what they say.
func TestWhoSpeaksPays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := agentBacked(recogniser(counts), says("yes"))
		own, anns, bobs := &minutes{left: time.Hour}, &minutes{left: time.Hour}, &minutes{left: 20 * time.Millisecond}
		cfg.Version, cfg.Allowance = 2, own
		c := start(t, cfg)
		if err := c.session.Join(t.Context(), c, session.Hello{Seat: session.Room}); err != nil {
			t.Fatal(err)
		}
		c.next()
		say := func(pays session.Allowance) { c.send(session.Audio{PCM: make([]byte, 640), Pays: pays}) }
		say(anns)
		say(anns)
		say(bobs)
		c.expect("listening", "? heard 1", "? heard 2", "? heard 3")
		say(bobs)
		c.expect("! audio_too_long")
		say(nil)
		c.expect("? heard 4")
		spent := func(m *minutes, of, want time.Duration) {
			t.Helper()
			if got := of - m.left; got != want {
				t.Errorf("%s were taken, want %s", got, want)
			}
		}
		spent(anns, time.Hour, 40*time.Millisecond)
		spent(bobs, 20*time.Millisecond, 20*time.Millisecond)
		spent(own, time.Hour, 20*time.Millisecond)
	})
}
