package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"vela/e2e/bench/proc"
)

const (
	voiceTurns    = 30
	voiceQuestion = "what time is it"
	voiceAnswer   = "You said: what time is it" // the echo agent's
	voicePiece    = 20 * time.Millisecond
	voiceBytes    = 640 // of it, at 16 kHz
)

var voiceStart = frame(`{"type":"session.start","payload":{"turns":"agent","agent":"echo",` +
	`"audio":{"output":{"encoding":"pcm16","rate":16000,"framing":"json"}}}}`)

// voiced is one spoken turn: when each thing came, from the commit on, and what turn.metrics says of it.
type voiced struct {
	transcript, text, sound                               time.Duration
	SttMs, FirstTokenMs, FirstAudioMs, GatewayMs, TotalMs float64
}

// voice measures the time from the end of speech to the first sound of the answer, stage by stage, with PocketSphinx, the
// echo agent and flite: what a person waits for. The floor is flite alone, which speaks the same sentence into a file,
// and what the recogniser took; the rest is the gateway's own share, with the two sockets.
func (b *bench) voice() error {
	dir, err := os.MkdirTemp("", "vela-bench-voice-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	speech, err := flite(dir, voiceQuestion)
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Printf("speech to sound: not measured, flite is not installed\n\n")
		return nil
	}
	if err != nil {
		return err
	}
	vela, err := proc.Start(b.vela, "serve", "--addr", "127.0.0.1:0", "--log-level", "error")
	if err != nil {
		return err
	}
	defer vela.Stop()
	c, err := dial(vela.Addr, "", version2)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(voiceStart); err != nil {
		return err
	}
	if err := c.until(`"idle"`); err != nil {
		return err
	}
	var turns []voiced
	var alone []time.Duration
	for n := range voiceTurns + 2 {
		turn, err := c.voiced(speech)
		if err != nil {
			return fmt.Errorf("turn %d: %w", n+1, err)
		}
		from := time.Now()
		if _, err := flite(dir, voiceAnswer); err != nil {
			return err
		}
		if n >= 2 { // the first ones load what is needed
			turns, alone = append(turns, turn), append(alone, time.Since(from))
		}
	}
	printVoiced(turns, alone)
	return nil
}

// flite lets it speak a text and returns the samples, PCM16 at 16 kHz: its WAV files have a header of 44 bytes.
func flite(dir, text string) ([]byte, error) {
	name := filepath.Join(dir, "said.wav")
	cmd := exec.Command("flite", "-voice", "slt", "-f", "/dev/stdin", "-o", name)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("flite: %w\n%s", err, out)
	}
	wav, err := os.ReadFile(name)
	if err != nil || len(wav) < 44 {
		return nil, fmt.Errorf("flite wrote %d bytes: %w", len(wav), err)
	}
	return wav[44:], nil
}

// voiced speaks one turn at the speed of speech, breaks the answer off at its first sound, and waits until the session
// is idle.
func (c *conn) voiced(speech []byte) (voiced, error) {
	began := time.Now()
	for n := 0; n*voiceBytes < len(speech); n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * voicePiece)))
		piece := speech[n*voiceBytes : min(len(speech), (n+1)*voiceBytes)]
		chunk := base64.StdEncoding.EncodeToString(piece)
		if _, err := c.Write(frame(`{"type":"input_audio.append","payload":{"chunk":"` + chunk + `"}}`)); err != nil {
			return voiced{}, err
		}
	}
	committed := time.Now()
	if _, err := c.Write(commitFrame); err != nil {
		return voiced{}, err
	}
	var t voiced
	for {
		m, err := c.next()
		if err != nil {
			return t, err
		}
		at := time.Since(committed)
		switch is := func(kind string) bool { return bytes.Contains(m, []byte(`"type":"`+kind+`"`)) }; {
		case is("transcript.final"):
			t.transcript = at
		case is("response.text.delta") && t.text == 0:
			t.text = at
		case is("response.audio.delta") && t.sound == 0:
			t.sound = at
			if _, err := c.Write(cancelFrame); err != nil {
				return t, err
			}
		case is("turn.metrics"):
			e := struct{ Payload *voiced }{&t}
			if err := json.Unmarshal(m, &e); err != nil {
				return t, err
			}
		case is("error"):
			return t, fmt.Errorf("the gateway says %s", m)
		case is("session.state") && bytes.Contains(m, []byte(`"idle"`)):
			if t.sound == 0 {
				return t, errors.New("it was not answered with sound: nothing was recognised")
			}
			return t, nil
		}
	}
}

func printVoiced(turns []voiced, alone []time.Duration) {
	row := func(name string, of func(voiced) float64) {
		var all []time.Duration
		for _, t := range turns {
			all = append(all, time.Duration(of(t)*float64(time.Millisecond)))
		}
		fmt.Printf("  %-46s %8.1f %8.1f ms\n", name, ms(percentile(all, 0.5)), ms(percentile(all, 0.99)))
	}
	fmt.Printf("from the end of speech to the first sound of the answer, %d turns, echo agent           p50      p99\n", len(turns))
	row("the client: to the final transcript", func(t voiced) float64 { return ms(t.transcript) })
	row("  from there to the first text", func(t voiced) float64 { return ms(t.text - t.transcript) })
	row("  from there to the first sound", func(t voiced) float64 { return ms(t.sound - t.text) })
	row("  in all", func(t voiced) float64 { return ms(t.sound) })
	row("turn.metrics: sttMs, the recogniser", func(t voiced) float64 { return t.SttMs })
	row("  firstTokenMs", func(t voiced) float64 { return t.FirstTokenMs })
	row("  firstAudioMs", func(t voiced) float64 { return t.FirstAudioMs })
	row("  gatewayMs", func(t voiced) float64 { return t.GatewayMs })
	floor := percentile(alone, 0.5)
	fmt.Printf("  %-46s %8.1f %8.1f ms\n", "flite alone, the same sentence into a file", ms(floor), ms(percentile(alone, 0.99)))
	row("  what is left of all: neither recogniser nor flite", func(t voiced) float64 { return ms(t.sound) - t.SttMs - ms(floor) })
	var ratio []float64
	for _, t := range turns {
		ratio = append(ratio, ms(t.sound)/(t.SttMs+ms(floor)))
	}
	fmt.Printf("  ratio  %8.2f times what the recogniser and flite take\n\n", median(ratio))
}
