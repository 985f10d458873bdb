package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"vela/gateway/client"
	"vela/protocol"
	"vela/session/speech"
)

type sayCmd struct {
	File      string `arg:"" help:"WAV file, PCM of any rate and up to 8 channels; - reads standard input."`
	URL       string `help:"Gateway to speak to." default:"127.0.0.1:8080" env:"VELA_URL"`
	Fast      bool   `help:"Send as fast as the gateway takes it, not at the speed of speech."`
	HandsFree bool   `help:"Let the gateway notice where the speech begins and ends, as with an open microphone."`
	Out       string `help:"WAV file to write the spoken answer to." placeholder:"FILE.wav"`
}

// token says who we are. It comes from the environment alone: whatever stands on a command line, others can read.
func token() string { return os.Getenv("VELA_TOKEN") }

// longest bounds what is read of a file: a turn may have ten minutes of audio, and files come at up to 192 kHz.
const longest = 192_000 * 60 * 11

// Run speaks one turn. What was recognised and answered goes to standard output, everything else to standard error.
func (c *sayCmd) Run(ctx context.Context, io streams) error {
	samples, err := c.read()
	if err != nil {
		return err
	}
	conn, err := client.Dial(ctx, c.URL, client.Options{
		Turns: "agent", Token: token(),
		Subprotocols: []string{client.Version2, client.Version1}, // an older gateway takes the second
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	format := protocol.Format{Encoding: "pcm16", Rate: speech.Rate, Framing: "binary"}
	audio := &protocol.AudioFormats{Input: &format}
	if c.Out != "" {
		audio.Output = &protocol.Format{Encoding: "pcm16", Rate: answerRate, Framing: "json"}
	}
	ask := protocol.SessionStart{Audio: audio}
	if c.HandsFree {
		ask.TurnDetection = "vad"
	}
	if _, err := conn.Start(ctx, ask); err != nil {
		return err
	}
	fmt.Fprintf(io.err, "speaking %.1f s\n", speech.Duration(len(samples), speech.Rate).Seconds())
	t := &teller{streams: io}
	r := &recorder{send: func(m protocol.Message) error { return conn.Send(ctx, m) }}
	_, err = conn.Say(ctx, samples, client.SayOptions{Fast: c.Fast, HandsFree: c.HandsFree, On: func(m protocol.Message) {
		t.tell(m)
		r.hear(m)
	}})
	t.end()
	if err != nil || c.Out == "" {
		return err
	}
	return r.write(c.Out)
}

// answerRate is how answers are recorded, in Hz.
const answerRate = 24000

// recorder keeps the sound of an answer. It says at once that it has played it, so that it gets all of it as soon as it
// is made.
type recorder struct {
	send    func(protocol.Message) error
	samples []int16
	failed  error
}

func (r *recorder) hear(m protocol.Message) {
	sound, ok := m.(protocol.ResponseAudioDelta)
	if !ok || r.failed != nil {
		return
	}
	pcm, err := base64.StdEncoding.DecodeString(sound.Chunk)
	if err != nil {
		r.failed = errors.New("the gateway sent sound that is no base64")
		return
	}
	r.samples = speech.AppendSamples(r.samples, pcm)
	played := speech.Duration(len(r.samples), answerRate).Milliseconds()
	r.failed = r.send(protocol.PlaybackAck{ResponseID: sound.ResponseID, PlayedMs: played})
}

func (r *recorder) write(name string) error {
	if r.failed != nil {
		return r.failed
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	err = speech.WriteWAV(f, answerRate, r.samples)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	return nil
}

// authorization is for a gateway that asks who we are. A token stands in no flag, where other users could see it.
func authorization() http.Header {
	if token := os.Getenv("VELA_TOKEN"); token != "" {
		return http.Header{"Authorization": {"Bearer " + token}}
	}
	return nil
}

func (c *sayCmd) read() ([]int16, error) {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, fmt.Errorf("cannot read the WAV file: %w", err)
		}
		defer f.Close()
		in = f
	}
	wav, err := speech.ReadWAV(in, longest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	if most := 10 * time.Minute; wav.Duration() > most {
		return nil, fmt.Errorf("%s: %s of audio: a turn takes at most %s", c.File, wav.Duration().Round(time.Second), most)
	}
	samples, err := speech.Resample(wav.Samples, wav.Rate, speech.Rate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	if len(samples) == 0 {
		return nil, errors.New(c.File + ": there is no audio in it")
	}
	return samples, nil
}

// teller prints a turn as it happens.
type teller struct {
	streams
	answering bool
}

func (t *teller) tell(m protocol.Message) {
	switch m := m.(type) {
	case protocol.TranscriptPartial:
		fmt.Fprintf(t.err, "… %s\n", m.Text)
	case protocol.TranscriptFinal:
		if m.Text == "" {
			fmt.Fprintln(t.err, "Nothing was recognised.")
			return
		}
		fmt.Fprintf(t.out, "you: %s\n", m.Text)
	case protocol.ResponseTextDelta:
		if !t.answering {
			t.answering = true
			fmt.Fprint(t.out, "agent: ")
		}
		fmt.Fprint(t.out, m.Text)
	}
}

func (t *teller) end() {
	if t.answering {
		fmt.Fprintln(t.out)
	}
}
