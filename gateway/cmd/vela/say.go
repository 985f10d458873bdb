package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"vela/gateway/client"
	"vela/protocol"
	"vela/session/opus"
	"vela/session/speech"
)

type sayCmd struct {
	File      string `arg:"" help:"WAV file, PCM of any rate and up to 8 channels; - reads standard input."`
	URL       string `help:"Gateway to speak to." default:"127.0.0.1:8080" env:"VELA_URL"`
	Fast      bool   `help:"Send as fast as the gateway takes it, not at the speed of speech."`
	HandsFree bool   `help:"Let the gateway notice where the speech begins and ends, as with an open microphone."`
	Voice     bool   `help:"Speak the answer, through paplay, aplay, play (SoX) or ffplay."`
	Out       string `help:"WAV file to write the spoken answer to, instead." placeholder:"FILE.wav"`

	Encoding string `help:"How sound travels, both ways: ${enum}." enum:"pcm16,opus" default:"pcm16"`
}

// token says who we are. It comes from the environment alone: whatever stands on a command line, others can read.
func token() string { return os.Getenv("VELA_TOKEN") }

// longest bounds what is read of a file: a turn may have ten minutes of audio, and files come at up to 192 kHz.
const longest = 192_000 * 60 * 11

// Run speaks one turn. What was recognised and answered goes to standard output, everything else to standard error.
func (c *sayCmd) Run(ctx context.Context, io streams) (err error) {
	samples, err := readSpeech(c.File)
	if err != nil {
		return err
	}
	var codec speech.Codec
	if c.Encoding == "opus" {
		if codec, err = opus.New(); err != nil {
			return err
		}
	}
	var to sink
	if c.Voice || c.Out != "" {
		if to, err = newSink(c.Out); err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, to.close()) }()
	}
	conn, err := client.Dial(ctx, c.URL, client.Options{
		Turns: "agent", Token: token(), Codec: codec,
		Subprotocols: []string{client.Version2, client.Version1}, // an older gateway takes the second
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if to != nil && conn.Version() == 1 {
		return errors.New("this gateway is too old to speak its answers")
	}
	format := protocol.Format{Encoding: c.Encoding, Rate: speech.Rate, Framing: "binary"}
	audio := &protocol.AudioFormats{Input: &format}
	var heard *speaker
	if to != nil {
		audio.Output = spoken(c.Encoding)
		decode := speech.Samples
		if codec != nil {
			packets, err := codec.Decoder(answerRate)
			if err != nil {
				return err
			}
			decode = packetsOf(packets)
		}
		heard = newSpeaker(to, decode, func(ack protocol.PlaybackAck) bool { return conn.Send(ctx, ack) == nil })
		defer heard.close()
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
	_, err = conn.Say(ctx, samples, client.SayOptions{Fast: c.Fast, HandsFree: c.HandsFree, On: func(m protocol.Message) {
		t.tell(m)
		heard.hear(m)
		t.note(heard.notice())
	}})
	t.end()
	t.note(heard.notice())
	if ctx.Err() != nil {
		heard.cut()
	}
	return err
}

// readSpeech reads a WAV file, or standard input for -, as mono samples at [speech.Rate].
func readSpeech(name string) ([]int16, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the WAV file: %w", err)
		}
		defer f.Close()
		in = f
	}
	wav, err := speech.ReadWAV(in, longest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if most := 10 * time.Minute; wav.Duration() > most {
		return nil, fmt.Errorf("%s: %s of audio: a turn takes at most %s", name, wav.Duration().Round(time.Second), most)
	}
	samples, err := speech.Resample(wav.Samples, wav.Rate, speech.Rate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(samples) == 0 {
		return nil, errors.New(name + ": there is no audio in it")
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

// note prints what the speaker has to say.
func (t *teller) note(notes <-chan string) {
	select {
	case note := <-notes:
		t.end()
		fmt.Fprintln(t.err, note)
	default:
	}
}

func (t *teller) end() {
	if t.answering {
		fmt.Fprintln(t.out)
	}
	t.answering = false
}
