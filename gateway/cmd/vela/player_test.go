package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/gateway"
	"vela/protocol"
	"vela/session/speech"
)

// only lets no command be found but the given scripts, by their names.
func only(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

// catches writes what a player is given to a file, and its arguments to another.
func catches(dir string) string {
	return fmt.Sprintf("echo \"$@\" >> %s/args; exec /bin/cat >> %[1]s/played", dir)
}

// speaking is a gateway whose voice speaks a second of a tone, whatever it is given.
func speaking(t *testing.T) gateway.Config {
	t.Helper()
	dir := t.TempDir()
	wav := filepath.Join(dir, "tone.wav")
	f, err := os.Create(wav)
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]int16, 24000)
	for i := range samples {
		samples[i] = int16(1 + i%1000)
	}
	if err := speech.WriteWAV(f, 24000, samples); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "vela.yaml")
	if err := os.WriteFile(name, []byte("voices:\n  - {kind: command, command: [/bin/cat, "+wav+"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := gateway.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return gateway.Config{Agents: file}
}

// A typed turn is answered by a second of sound, which the player gets whole, and the chat waits until it has been played.
func TestChatWithAVoice(t *testing.T) {
	cfg := speaking(t)
	dir := t.TempDir()
	only(t, map[string]string{"aplay": catches(dir)})
	to, err := newSink("")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs paper
	began := time.Now()
	c := &chat{url: liveGateway(t, cfg), turns: "agent", in: strings.NewReader("one\n/history\n"), streams: streams{&out, &errs}, sink: to}
	if err := c.run(t.Context()); err != nil || to.close() != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if want := "You said: one\nuser: one\nassistant: You said: one\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("a second of sound was played in %v", took)
	}
	played, err := os.ReadFile(filepath.Join(dir, "played"))
	if err != nil || len(played) != 48000 || speech.Samples(played)[10] != 11 {
		t.Errorf("%d bytes were played, %v", len(played), err)
	}
	args, _ := os.ReadFile(filepath.Join(dir, "args"))
	if !strings.Contains(string(args), "-r 24000") {
		t.Errorf("the player was called with %s", args)
	}
}

// What was played by the clock is what was heard, and Ctrl-C silences the player.
func TestChatSilencesItsPlayer(t *testing.T) {
	cfg := speaking(t)
	dir := t.TempDir()
	only(t, map[string]string{"paplay": "echo $$ > " + dir + "/pid; " + catches(dir)})
	to, err := newSink("")
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	defer w.Close()
	interrupts, ended := make(chan os.Signal, 2), make(chan error, 1)
	var out, errs paper
	c := &chat{url: liveGateway(t, cfg), turns: "agent", in: r, interrupts: interrupts, typed: true, streams: streams{&out, &errs}, sink: to}
	go func() { ended <- c.run(t.Context()) }()
	out.await(t, "> ")
	_, _ = io.WriteString(w, strings.Repeat("One two three. ", 20)+"\n") // 20 s of sound
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if played, _ := os.ReadFile(filepath.Join(dir, "played")); len(played) > 48000 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is played\n%s%s", &out, &errs)
		}
	}
	interrupts <- os.Interrupt
	out.await(t, " …\n> ")
	if pid, err := os.ReadFile(filepath.Join(dir, "pid")); err != nil || processThere(strings.TrimSpace(string(pid))) {
		t.Errorf("the player goes on (%v)", err)
	}
	_, _ = io.WriteString(w, "/history\n")
	out.await(t, "assistant: ")
	_, _ = io.WriteString(w, "/quit\n")
	if err := <-ended; err != nil || to.close() != nil {
		t.Error(err)
	}
}

func processThere(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// A player that fails is named once, the next one goes on, and without any the answers are text.
func TestPlayersThatFail(t *testing.T) {
	cfg := speaking(t)
	dir := t.TempDir()
	played := filepath.Join(dir, "played")
	for name, c := range map[string]struct {
		scripts map[string]string
		says    []string
		played  bool
	}{
		"the next one plays": {map[string]string{"paplay": "echo no server >&2; exit 1", "aplay": catches(dir)}, []string{"paplay does not play: no server"}, true},
		"all of them":        {map[string]string{"paplay": "exit 1", "play": "exit 2"}, []string{"paplay does not play: it ended", "play does not play: it ended (exit status 2)", "--out FILE.wav would write them"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			only(t, c.scripts)
			to, err := newSink("")
			if err != nil {
				t.Fatal(err)
			}
			var out, errs paper
			chat := &chat{url: liveGateway(t, cfg), turns: "agent", in: strings.NewReader("one\ntwo\n"), streams: streams{&out, &errs}, sink: to}
			if err := chat.run(t.Context()); err != nil || to.close() != nil || out.String() != "You said: one\nYou said: two\n" {
				t.Errorf("%v: %s", err, &out)
			}
			for _, words := range c.says {
				if strings.Count(errs.String(), words) != 1 {
					t.Errorf("it does not say %q once:\n%s", words, &errs)
				}
			}
			if sound, _ := os.ReadFile(played); c.played != (len(sound) > 48000) {
				t.Errorf("%d bytes were played", len(sound))
			}
			_ = os.Remove(played)
		})
	}
}

func TestNoPlayer(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes")
	only(t, nil)
	wav := silentWAV(t)
	for _, args := range [][]string{{"chat", "--voice"}, {"say", "--voice", wav}} {
		if code, _, errs := vela(t, args...); code != 1 || !strings.Contains(errs, "install paplay") || !strings.Contains(errs, "--out FILE.wav") {
			t.Errorf("%v: exit %d\n%s", args, code, errs)
		}
	}
	for _, args := range [][]string{{"chat", "--out", "/no/such/folder/a.wav"}, {"say", "--out", "/no/such/folder/a.wav", wav}} {
		if code, _, errs := vela(t, args...); code != 1 || !strings.Contains(errs, "cannot write the answer") {
			t.Errorf("%v: exit %d\n%s", args, code, errs)
		}
	}
	// Nobody listens: what was there stays, and nothing new is left.
	if err := os.WriteFile(text, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := text + "2"
	for _, out := range []string{text, fresh} {
		if code, _, errs := vela(t, "chat", "--url", "127.0.0.1:1", "--out", out); code != 1 || !strings.Contains(errs, "no gateway listens") {
			t.Errorf("exit %d\n%s", code, errs)
		}
	}
	if kept, err := os.ReadFile(text); string(kept) != "mine" {
		t.Errorf("it holds %q, %v", kept, err)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("an empty file is left")
	}
}

func silentWAV(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "silence.wav")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := speech.WriteWAV(f, speech.Rate, make([]int16, speech.Rate/4)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// The answers of a conversation are written one behind the other, as soon as they are made, without what was said in a silence.
func TestChatWritesItsAnswers(t *testing.T) {
	cfg := speaking(t)
	name := filepath.Join(t.TempDir(), "answers.wav")
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o600); err != nil { // what was there is gone
		t.Fatal(err)
	}
	to, err := newSink(name)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs paper
	c := &chat{url: liveGateway(t, cfg), turns: "agent", in: strings.NewReader("one\ntwo\n"), streams: streams{&out, &errs}, sink: to}
	if err := c.run(t.Context()); err != nil || to.close() != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wav, err := speech.ReadWAV(f, 1<<20)
	if err != nil || wav.Rate != answerRate || len(wav.Samples) != 2*answerRate {
		t.Errorf("%d samples at %d Hz, %v", len(wav.Samples), wav.Rate, err)
	}
	if info, _ := f.Stat(); info.Size() != 44+4*answerRate {
		t.Errorf("the file has %d bytes", info.Size())
	}
}

// kept is a sink that keeps what it is given.
type kept struct {
	samples   int
	cuts      int
	instantly bool
}

func (k *kept) write(samples []int16) (string, bool) { k.samples += len(samples); return "", true }
func (k *kept) cut()                                 { k.cuts++ }
func (k *kept) end()                                 {}
func (k *kept) close() error                         { return nil }
func (k *kept) atOnce() bool                         { return k.instantly }

// What is acknowledged is what has been heard by the clock: never more than has come, all of it in the end, and again where
// it could not be told. A record has heard everything at once, and none of the phrases.
func TestAcknowledgementsByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chunk := make([]int16, answerRate/25)
		delta := func(ms int64, filler bool) protocol.ResponseAudioDelta {
			return protocol.ResponseAudioDelta{ResponseID: "r1", Chunk: base64Of(chunk), StartMs: ms, Filler: filler}
		}
		acks := make(chan protocol.PlaybackAck, 64)
		lost := 1
		to := &kept{}
		s := newSpeaker(to, speech.Samples, func(a protocol.PlaybackAck) bool {
			if lost > 0 {
				lost--
				return false
			}
			acks <- a
			return true
		})
		began := time.Now()
		for ms := int64(0); ms < 400; ms += 40 {
			s.hear(delta(ms, ms < 80))
		}
		var all []int64
		for last := int64(0); last < 400; {
			a := <-acks
			if by := time.Since(began).Milliseconds(); a.PlayedMs > by+1 && a.PlayedMs > 0 || a.PlayedMs <= last || a.ResponseID != "r1" {
				t.Errorf("%+v after %d ms and after %d", a, by, last)
			}
			last = a.PlayedMs
			all = append(all, last)
		}
		if len(all) < 2 || !slices.IsSorted(all) || all[len(all)-1] != 400 {
			t.Errorf("acknowledged were %v", all)
		}
		s.hear(delta(400, false))
		if heard := s.cut(); heard.ResponseID != "r1" || heard.PlayedMs < 400 || heard.PlayedMs > 440 {
			t.Errorf("a cut has heard %+v", heard)
		}
		s.hear(delta(440, false))
		if heard := s.cut(); heard.ResponseID != "" {
			t.Errorf("a second one has heard %+v", heard)
		}
		s.close()
		if to.samples != 11*len(chunk) || to.cuts != 2 {
			t.Errorf("%d samples were played, and %d cuts", to.samples, to.cuts)
		}

		record := &kept{instantly: true}
		s = newSpeaker(record, speech.Samples, func(a protocol.PlaybackAck) bool { acks <- a; return true })
		s.hear(delta(0, true))
		s.hear(delta(40, false))
		s.hear(protocol.ResponseCompleted{ResponseID: "r1"})
		for _, want := range []int64{40, 80} {
			if a := <-acks; a.PlayedMs != want {
				t.Errorf("acknowledged is %+v, want %d", a, want)
			}
		}
		s.close()
		if record.samples != len(chunk) {
			t.Errorf("%d samples were recorded", record.samples)
		}
	})
}

func base64Of(samples []int16) string {
	return base64.StdEncoding.EncodeToString(speech.Bytes(samples))
}
