package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/session"
	"vela/turn/deterministic"
	"vela/turn/echo"
)

// file is where a journal goes.
type file struct {
	bytes.Buffer
	closed bool
}

func (f *file) Close() error { f.closed = true; return nil }

// record runs a session of version 2 with a journal, in a bubble, and returns what was written.
func record(t *testing.T, cfg session.Config, play func(*client)) []byte {
	t.Helper()
	var journal file
	synctest.Test(t, func(t *testing.T) {
		cfg.Version, cfg.Token, cfg.Journal = 2, "do-not-write-me-down", func() io.WriteCloser { return &journal }
		c := start(t, cfg)
		c.join()
		play(c)
		synctest.Wait()
		c.cancel(session.ErrShutdown)
		<-c.ended
	})
	if !journal.closed {
		t.Error("the journal was not closed")
	}
	return journal.Bytes()
}

func replayed(t *testing.T, journal []byte) session.Replayed {
	t.Helper()
	r, err := session.Replay(bytes.NewReader(journal), deterministic.Engine{}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, journal)
	}
	return r
}

// play sends random events with random pauses.
func play(c *client, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	yes, no := true, false
	c.send(withVoice) // where there is none, it is refused
	for range 40 {
		messages := []protocol.Message{
			protocol.SessionStart{}, protocol.SessionStart{Interrupt: &yes}, protocol.SessionStart{Interrupt: &no},
			protocol.SessionStart{Turns: "agent"}, protocol.SessionStart{Turns: "deterministic"}, protocol.SessionStart{Turns: "magic"},
			protocol.MockedTurnTrigger{}, protocol.InputAudioAppend{Chunk: "AAAA"}, protocol.InputAudioAppend{Chunk: "%"},
			protocol.InputAudioCommit{}, protocol.InputAudioClear{}, protocol.ResponseCancel{},
			protocol.InputTextSubmit{Text: "one two three"}, protocol.HistoryGet{}, protocol.HistoryClear{},
			protocol.PlaybackAck{ResponseID: "r1"}, session.Audio{PCM: []byte{1, 2}}, withVoice,
			protocol.PlaybackAck{ResponseID: fmt.Sprint("r", 1+rng.IntN(8)), PlayedMs: rng.Int64N(800)},
			protocol.InputTextSubmit{Text: "Four five. Six seven eight nine, and ten. " + "`" + "x" + "`" + "."},
		}
		c.send(messages[rng.IntN(len(messages))])
		switch rng.IntN(8) {
		case 0:
			time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		case 1:
			c.session.Leave(c)
			if err := c.session.Join(c.t.Context(), c, session.Hello{Resume: true, After: uint64(rng.IntN(20))}); err != nil {
				c.t.Fatal(err)
			}
		case 2:
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
		case 3:
			_ = c.session.Reject(c.t.Context(), c, "x", errors.New("no event"))
		}
	}
}

// TestAJournalReplaysToTheSameEvents records a hundred sessions of every kind and runs them again.
func TestAJournalReplaysToTheSameEvents(t *testing.T) {
	events, sounds, phrases := 0, 0, 0
	for seed := range uint64(100) {
		cfg := session.Config{Mock: deterministic.Engine{Pace: time.Duration(seed%3) * 60 * time.Millisecond}}
		if seed%2 == 0 {
			cfg.Turns = session.Agent
		}
		if seed%5 != 0 {
			cfg.Agents = agents(echo.Engine{})
		}
		if seed%7 != 0 {
			cfg.Transcriber = hears("a b c", "a", "a b")
		}
		if seed%3 != 0 {
			cfg.Turns, cfg.Agents = session.Agent, agents(echo.Engine{})
			cfg.Voices = named([]session.Synthesizer{
				&drone{rate: 24000, pause: time.Duration(seed%5) * 15 * time.Millisecond, fails: func(sentence, chunk int) error {
					if seed%4 == 1 && sentence%3 == 2 && chunk == 4 {
						return errSecret
					}
					return nil
				}},
				&drone{rate: 16000},
			}[:1+seed%2]...)
		}
		if seed%9 == 2 || seed%9 == 4 { // whose agent is so slow that phrases are said, and broken off
			cfg.Agents = agents(steps(after{700 * time.Millisecond, delta("Let me see")}, after{0, callsTool},
				after{time.Duration(seed) * 30 * time.Millisecond, toolReturns}, after{0, delta("It is noon.")}, after{0, done}))
			cfg.Agents[0].Filler, cfg.Agents[0].FillerAfter = aWhile, time.Duration(1+seed%7)*100*time.Millisecond
		}
		journal := record(t, cfg, func(c *client) { play(c, seed) })
		r := replayed(t, journal)
		if r.Different != nil {
			t.Fatalf("session %d: %+v\n%s", seed, *r.Different, journal)
		}
		if r.Events == 0 || r.Inputs == 0 || r.ID != sessionID {
			t.Fatalf("session %d: %+v", seed, r)
		}
		if strings.Contains(string(journal), "do-not-write-me-down") {
			t.Fatalf("session %d: the journal has the resume token", seed)
		}
		events += r.Events
		phrases += strings.Count(string(journal), `"filler":true`)
		sounds += strings.Count(string(journal), `"type":"response.audio.delta"`)
	}
	t.Logf("%d events came out the same, %d of them sound", events, sounds)
	if sounds < 1000 || phrases < 100 {
		t.Errorf("only %d of the events are sound, %d of them phrases", sounds, phrases)
	}
}

// TestAChangedMessageIsReported changes one message of a journal and expects to be shown just that one.
func TestAChangedMessageIsReported(t *testing.T) {
	journal := record(t, session.Config{Turns: session.Agent, Agents: agents(echo.Engine{})}, func(c *client) {
		for i := range 5 {
			c.send(protocol.InputTextSubmit{Text: fmt.Sprintf("question %d", i)})
			synctest.Wait()
		}
	})
	if r := replayed(t, journal); r.Different != nil {
		t.Fatalf("unchanged: %+v", *r.Different)
	}
	lines := strings.SplitAfter(string(journal), "\n")
	for i, line := range lines {
		if !strings.Contains(line, `"input_text.submit"`) {
			continue
		}
		changed := append([]string(nil), lines...)
		changed[i] = strings.Replace(line, "question", "answer", 1)
		r := replayed(t, []byte(strings.Join(changed, "")))
		if r.Different == nil || r.Different.Line != i+1 {
			t.Errorf("line %d was changed, reported is %+v", i+1, r.Different)
		}
	}
	for _, gone := range []string{`"response.created"`, `"response.completed"`} {
		for i, line := range lines {
			if strings.Contains(line, gone) {
				r := replayed(t, []byte(strings.Join(append(append([]string(nil), lines[:i]...), lines[i+1:]...), "")))
				if r.Different == nil {
					t.Errorf("the event in line %d was taken out, and nothing is reported", i+1)
				}
			}
		}
	}
}

// TestAJournalCutOff is what a crash leaves behind: it replays as far as it goes, wherever it was cut.
func TestAJournalCutOff(t *testing.T) {
	journal := record(t, session.Config{}, func(c *client) { c.send(protocol.MockedTurnTrigger{}) })
	end := bytes.IndexByte(journal, '\n') + 1
	for n := end; n < len(journal); n += 7 {
		r, err := session.Replay(bytes.NewReader(journal[:n]), deterministic.Engine{}, nil)
		if err != nil || r.Different != nil && r.Different.Want != "" {
			t.Fatalf("cut at %d: %v %+v", n, err, r.Different)
		}
	}
}

func TestWhatIsNoJournal(t *testing.T) {
	for _, text := range []string{"", "{}", "not json", `{"journal":1}`, `{"journal":2,"id":"x","protocol":2}` + "\n" + `{"in":{"kind":"magic"}}` + "\n{}",
		`{"journal":2,"id":"x","protocol":2}` + "\n" + `{"in":{"kind":"taken"}}` + "\n{}"} {
		if r, err := session.Replay(strings.NewReader(text), deterministic.Engine{}, nil); err == nil {
			t.Errorf("%q was taken: %+v", text, r)
		}
	}
}

// TestAFullDiskEndsTheJournalOnly: the session goes on, and the log says it once.
func TestAFullDiskEndsTheJournalOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, session.Config{Version: 2, Journal: func() io.WriteCloser { return fullDisk{} }})
		c.join()
		c.send(protocol.MockedTurnTrigger{})
		synctest.Wait()
		if got := c.next(); len(got) == 0 || got[len(got)-1] != "idle" {
			t.Errorf("shown: %q", got)
		}
	})
}

type fullDisk struct{}

func (fullDisk) Close() error { return nil }

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// FuzzReplay: no file that somebody sends in takes the program down.
func FuzzReplay(f *testing.F) {
	files, _ := filepath.Glob("testdata/journals/*.jsonl")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte(`{"journal":2,"id":"x","protocol":2,"turns":"deterministic"}` + "\n" + `{"at":1,"in":{"kind":"joined","peer":1}}` + "\n" +
		`{"at":2,"in":{"kind":"client","peer":1,"client":{"type":"mocked.turn.trigger","payload":{}}}}` + "\n"))
	const spoken = `{"journal":2,"id":"x","protocol":2,"turns":"agent","agents":[{"name":"a"}],"voices":["a","b"],` +
		`"settings":{"audio":{"output":{"encoding":"pcm16","rate":8000,"framing":"json"}}}}` + "\n" + `{"at":1,"in":{"kind":"joined","peer":1}}` + "\n"
	const asked = `{"at":2,"in":{"kind":"client","peer":1,"client":{"type":"input_text.submit","payload":{"text":"x"}}}}` + "\n"
	const said = `{"at":3,"in":{"kind":"said","type":"text_delta","signal":{"agentId":"a","content":"It is noon. Be there. "}}}` + "\n"
	const piece = `{"at":5,"in":{"kind":"spoken","pcm":"AAAAAAAA","rate":16000}}` + "\n"
	for _, voice := range []string{
		`{"at":4,"in":{"kind":"offered"}}`, piece, `{"at":4,"in":{"kind":"spoken","ended":true}}`, `{"at":4,"in":{"kind":"spoken","error":{},"last":true}}`,
		`{"at":4,"in":{"kind":"offered"}}` + "\n" + piece + `{"at":6,"in":{"kind":"spoken","error":{},"ended":true}}` + "\n" + `{"at":7,"in":{"kind":"tick"}}`,
		`{"at":4,"in":{"kind":"offered"}}` + "\n" + piece + `{"at":6,"in":{"kind":"client","peer":1,"client":{"type":"playback.ack","payload":{"responseId":"r1","playedMs":9223372036854775807}}}}`,
		`{"at":4,"in":{"kind":"spoken","pcm":"AAAA","rate":-1}}`,
	} {
		f.Add([]byte(spoken + voice + "\n"))
		f.Add([]byte(spoken + asked + voice + "\n"))
		f.Add([]byte(spoken + asked + said + voice + "\n"))
	}
	const followed = `{"at":4,"in":{"kind":"followed","source":"s","type":"tool_call","signal":{"toolName":"Read","agentId":"a","callId":"c","input":{"path":"x"}}}}` + "\n" +
		`{"at":5,"in":{"kind":"followed","source":"s","type":"tool_result","signal":{"toolName":"Read","agentId":"a","callId":"c","success":false}}}` + "\n"
	f.Add([]byte(spoken + followed))
	f.Add([]byte(strings.Replace(spoken, `"settings":{`, `"settings":{"follow":["s"],`, 1) + followed + asked + followed))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = session.Replay(bytes.NewReader(b), deterministic.Engine{}, nil)
	})
}
