package session_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/protocol"
	"vela/protocol/signal"
	"vela/session"
	"vela/session/speech"
	"vela/turn"
	"vela/turn/deterministic"
)

// tape is a [speech.Codec] that loses nothing: a packet is "tape", its number in its stream, and the samples.
type tape struct {
	decoders int // streams that were begun to be read
	missing  int // packets whose number did not follow
	fails    int // the packet of an answer that cannot be encoded, from 1; 0: none
}

func (c *tape) Encoder(rate int) (speech.Encoder, error) { return &tapeEncoder{of: c, rate: rate}, nil }

func (c *tape) Decoder(int) (speech.Decoder, error) {
	c.decoders++
	return &tapeDecoder{of: c}, nil
}

type tapeEncoder struct {
	of   *tape
	rate int
	n    int
}

var errTape = errors.New("tape: torn at /dev/tape0")

func (e *tapeEncoder) Encode(samples []int16) ([]byte, error) {
	if len(samples) != speech.Count(speech.PacketLength, e.rate) {
		return nil, fmt.Errorf("tape: a packet of %d samples", len(samples))
	}
	if e.n++; e.n == e.of.fails {
		return nil, errTape
	}
	return speech.AppendBytes(binary.LittleEndian.AppendUint16([]byte("tape"), uint16(e.n)), samples), nil
}

type tapeDecoder struct {
	of *tape
	n  int
}

func (d *tapeDecoder) Decode(packet []byte) ([]int16, error) {
	rest, ok := bytes.CutPrefix(packet, []byte("tape"))
	if !ok || len(rest) < 2 {
		return nil, errTape
	}
	n := int(binary.LittleEndian.Uint16(rest))
	if n != d.n+1 {
		d.of.missing++
	}
	d.n = n
	return speech.Samples(rest[2:]), nil
}

// opus is the format, at a rate.
func opus(rate int, framing string) *protocol.Format {
	return &protocol.Format{Encoding: "opus", Rate: rate, Framing: framing}
}

// packets are so many of a stream, whose samples count up from 1.
func packets(t *testing.T, n int) (list [][]byte, whole []int16) {
	t.Helper()
	e := tapeEncoder{of: &tape{}, rate: speech.Rate}
	for range n {
		samples := make([]int16, 640)
		for i := range samples {
			samples[i] = int16(len(whole) + i + 1)
		}
		p, err := e.Encode(samples)
		if err != nil {
			t.Fatal(err)
		}
		list, whole = append(list, p), append(whole, samples...)
	}
	return list, whole
}

// spoken is a packet as a client sends it.
func spoken(packet []byte, framing string) protocol.Message {
	if framing == "binary" {
		return session.Audio{PCM: packet}
	}
	return protocol.InputAudioAppend{Chunk: base64Of(packet)}
}

// keeps is a recogniser that keeps what it hears.
func keeps(heard *[]int16) recogniser {
	return func(_ context.Context, audio iter.Seq[[]int16], yield func(speech.Transcript, error) bool) {
		for piece := range audio {
			*heard = append(*heard, piece...)
		}
		yield(speech.Transcript{Text: "when?", Final: true}, nil)
	}
}

// Who speaks Opus is heard to the sample, in either framing; what is no packet is refused, and nothing else is harmed.
func TestOpusIsHeard(t *testing.T) {
	for _, framing := range []string{"json", "binary"} {
		synctest.Test(t, func(t *testing.T) {
			var heard []int16
			codec := &tape{}
			cfg := version2(agentBacked(keeps(&heard), tells(story)))
			cfg.Codec = codec
			p := &player{client: start(t, cfg)}
			p.join()
			p.send(protocol.SessionStart{Audio: &protocol.AudioFormats{Input: opus(speech.Rate, framing)}})
			synctest.Wait()
			if ready, _ := last[protocol.SessionReady](p); *ready.Audio.Input != *opus(speech.Rate, framing) || !slices.Contains(ready.Features, "opus") {
				t.Fatalf("in force is %+v, %v", ready.Audio.Input, ready.Features)
			}
			list, whole := packets(t, 3)
			bad := [][]byte{nil, {1}, []byte("tap"), bytes.Repeat([]byte("tape"), 20_000)}
			for i, packet := range list {
				p.send(spoken(packet, framing))
				p.send(spoken(bad[i], framing), spoken(bad[i+1], framing))
			}
			if framing == "json" {
				p.send(protocol.InputAudioAppend{Chunk: "%"})
			}
			p.send(commit)
			synctest.Wait()
			if !slices.Equal(heard, whole) || codec.missing > 0 || codec.decoders != 1 {
				t.Errorf("%s: %d of %d samples were heard in %d streams, %d packets did not follow", framing, len(heard), len(whole), codec.decoders, codec.missing)
			}
			want := 6
			if framing == "json" {
				want = 7
			}
			told := p.told()
			if len(told) != want || slices.ContainsFunc(told, func(s string) bool {
				return !strings.HasPrefix(s, "invalid_message: The audio must be one Opus packet a message")
			}) {
				t.Errorf("%s: told %d times: %q", framing, len(told), told)
			}
			if done, _ := last[protocol.ResponseCompleted](p); done.HeardText != story {
				t.Errorf("the answer was %+v", done)
			}
		})
	}
}

// What is no packet does not interrupt; a packet does.
func TestGarbageInterruptsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := version2(agentBacked(keeps(new([]int16)), tells(story)))
		cfg.Codec, cfg.Voices = &tape{}, named(&drone{rate: 24000})
		p := &player{client: start(t, cfg)}
		p.onSend = p.hear
		p.join()
		p.send(protocol.SessionStart{Audio: &protocol.AudioFormats{Input: opus(speech.Rate, "binary"), Output: withVoice.Audio.Output}})
		p.send(typed("when?"))
		p.play(time.Second)
		p.send(session.Audio{PCM: []byte("noise")})
		synctest.Wait()
		if state, _ := last[protocol.SessionState](p); state.Value != protocol.Speaking {
			t.Errorf("after garbage the session is %s", state.Value)
		}
		list, _ := packets(t, 1)
		p.send(session.Audio{PCM: list[0]})
		synctest.Wait()
		if state, _ := last[protocol.SessionState](p); state.Value != protocol.Listening {
			t.Errorf("after a packet the session is %s", state.Value)
		}
	})
}

// A stream lasts as long as its connection: what comes over the next one, or after other settings, is another.
func TestAStreamIsAConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []int16
		codec := &tape{}
		cfg := version2(agentBacked(keeps(&heard), tells(story)))
		cfg.Codec = codec
		c := start(t, cfg)
		c.join()
		settings := protocol.SessionStart{Audio: &protocol.AudioFormats{Input: opus(speech.Rate, "binary")}}
		c.send(settings)
		list, whole := packets(t, 4)
		c.send(session.Audio{PCM: list[0]}, session.Audio{PCM: list[1]})
		synctest.Wait()
		again := &client{t: t, session: c.session}
		if err := c.session.Join(t.Context(), again, session.Hello{Resume: true, After: 1}); err != nil {
			t.Fatal(err)
		}
		again.send(session.Audio{PCM: list[2]}) // packets may be lost in between, so its number is not looked at
		again.send(session.Audio{PCM: list[3]}, commit)
		synctest.Wait()
		if !slices.Equal(heard, whole) || codec.decoders != 2 {
			t.Errorf("%d of %d samples were heard in %d streams, want 2", len(heard), len(whole), codec.decoders)
		}
		again.send(settings, session.Audio{PCM: list[0]})
		synctest.Wait()
		if codec.decoders != 3 {
			t.Errorf("after other settings there are %d streams, want 3", codec.decoders)
		}
	})
}

// unpacked is what a client gets of an answer.
type unpacked struct {
	samples []int16
	text    string
	gaps    int // packets that do not begin where the one before has ended
}

// soundOf decodes what came, with one decoder.
func soundOf(t *testing.T, codec *tape, events []session.Event, rate int) (s unpacked) {
	t.Helper()
	d, _ := codec.Decoder(rate)
	for _, e := range events {
		m, ok := e.Message.(protocol.ResponseAudioDelta)
		if !ok {
			continue
		}
		packet, err := base64.StdEncoding.DecodeString(m.Chunk)
		if err != nil {
			t.Fatal(err)
		}
		samples, err := d.Decode(packet)
		if err != nil || len(samples) != speech.Count(speech.PacketLength, rate) {
			t.Fatalf("a packet of %d samples, %v", len(samples), err)
		}
		if m.StartMs != speech.Duration(len(s.samples), rate).Milliseconds() {
			s.gaps++
		}
		s.samples, s.text = append(s.samples, samples...), s.text+m.Text
	}
	return s
}

// An answer in Opus is whole packets, one behind the other, with all of the sound and the text, and behind it as much
// silence as a decoder keeps back.
func TestAnAnswerInOpus(t *testing.T) {
	for _, rate := range speech.CodecRates {
		for _, text := range []string{story, "No.", "Yes.", "It is noon. Sail now and be there."} {
			synctest.Test(t, func(t *testing.T) {
				codec := &tape{}
				cfg := version2(agentBacked(nil, tells(text)))
				cfg.Codec, cfg.Voices = codec, named(&drone{rate: rate})
				p := &player{client: start(t, cfg)}
				p.join()
				p.send(protocol.SessionStart{Audio: &protocol.AudioFormats{Output: opus(rate, "json")}})
				p.send(typed("when?"))
				for range 20 { // it plays as fast as it can
					synctest.Wait()
					p.send(protocol.PlaybackAck{ResponseID: "r1", PlayedMs: 60_000})
				}
				time.Sleep(time.Minute)
				s := soundOf(t, codec, p.shown, rate)
				if s.gaps > 0 || codec.missing > 0 || s.text != text {
					t.Errorf("%d Hz: %d gaps, %d packets missing, %q", rate, s.gaps, codec.missing, s.text)
				}
				silent := 0
				for silent < len(s.samples) && s.samples[len(s.samples)-1-silent] == 0 {
					silent++
				}
				least, most := speech.Count(speech.CodecDelay, rate), speech.Count(speech.CodecDelay+speech.PacketLength, rate)
				if silent < least || silent > most {
					t.Errorf("%d Hz, %q: %d samples of silence follow, want %d to %d", rate, text, silent, least, most)
				}
				want := speech.Count(time.Duration(len(strings.ReplaceAll(text, ". ", ".")))*50*time.Millisecond, rate)
				sounding := slices.DeleteFunc(s.samples, func(s int16) bool { return s == 0 })
				if len(sounding) != want || !slices.IsSorted(sounding) {
					t.Errorf("%d Hz, %q: %d samples sound, want %d", rate, text, len(sounding), want)
				}
				if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != text {
					t.Errorf("%d Hz: it ended with %+v", rate, done)
				}
			})
		}
	}
}

// A sentence that comes late begins behind the silence that filled the last packet, and says so.
func TestALateSentenceInOpus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codec := &tape{}
		var late engine
		late = func(ctx context.Context, _ turn.Request, yield func(signal.Payload, error) bool) {
			if !yield(delta("It is noon. "), nil) || sleep(ctx, 10*time.Second) != nil {
				return
			}
			_ = yield(delta("Sail."), nil) && yield(done, nil)
		}
		cfg := version2(agentBacked(nil, late))
		cfg.Codec, cfg.Voices = codec, named(&drone{rate: 24000})
		p := &player{client: start(t, cfg)}
		p.join()
		p.send(protocol.SessionStart{Audio: &protocol.AudioFormats{Output: opus(24000, "json")}})
		p.send(typed("when?"))
		for range 400 {
			time.Sleep(50 * time.Millisecond)
			p.send(protocol.PlaybackAck{ResponseID: "r1", PlayedMs: 60_000})
			synctest.Wait()
		}
		s := soundOf(t, codec, p.shown, 24000)
		second := slices.Index(s.samples, 2)
		first := speech.Count(11*50*time.Millisecond+speech.CodecDelay, 24000)
		packet := speech.Count(speech.PacketLength, 24000)
		if whole := (first + packet - 1) / packet * packet; second != whole || s.gaps > 0 {
			t.Errorf("the second sentence begins at %d, want %d; %d gaps", second, whole, s.gaps)
		}
		if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != "It is noon. Sail." {
			t.Errorf("it ended with %+v", done)
		}
	})
}

// Who comes back gets the packets that were missed, byte for byte, and each once: a decoder goes on as if nothing had been.
func TestOpusIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codec := &tape{}
		cfg := version2(agentBacked(nil, tells(story)))
		cfg.Codec, cfg.Voices = codec, named(&drone{rate: 24000})
		c := start(t, cfg)
		c.join()
		c.send(protocol.SessionStart{Audio: &protocol.AudioFormats{Output: opus(24000, "json")}}, typed("when?"))
		var all []session.Event
		seq := uint64(0)
		for i := range 40 {
			synctest.Wait()
			for _, e := range c.shown {
				if e.Seq == seq+1 {
					all, seq = append(all, e), e.Seq
				}
			}
			c.session.Leave(c)
			c = &client{t: t, session: c.session}
			after := seq - min(seq, uint64(i%3)) // what it has twice it lets go of
			if err := c.session.Join(t.Context(), c, session.Hello{Resume: true, After: after}); err != nil {
				t.Fatal(err)
			}
			c.send(protocol.PlaybackAck{ResponseID: "r1", PlayedMs: int64(i) * 150})
		}
		if s := soundOf(t, codec, all, 24000); s.gaps > 0 || codec.missing > 0 || s.text != story {
			t.Errorf("%d gaps, %d packets missing, %q", s.gaps, codec.missing, s.text)
		}
	})
}

// A codec that fails costs the sound, not the answer; nobody is told where the tape lay.
func TestAnEncoderThatFails(t *testing.T) {
	for fails := 1; fails < 40; fails += 9 {
		synctest.Test(t, func(t *testing.T) {
			cfg := version2(agentBacked(nil, tells(story)))
			cfg.Codec, cfg.Voices = &tape{fails: fails}, named(&drone{rate: 24000})
			p := &player{client: start(t, cfg)}
			p.join()
			p.send(protocol.SessionStart{Audio: &protocol.AudioFormats{Output: opus(24000, "json")}}, typed("when?"))
			for i := range 200 {
				time.Sleep(50 * time.Millisecond)
				p.send(protocol.PlaybackAck{ResponseID: "r1", PlayedMs: int64(i) * 50})
			}
			synctest.Wait()
			if done, ok := last[protocol.ResponseCompleted](p); !ok || done.HeardText != story {
				t.Errorf("packet %d: it ended with %+v", fails, done)
			}
			sent := 0
			for _, e := range p.shown {
				if _, ok := e.Message.(protocol.ResponseAudioDelta); ok {
					sent++
				}
			}
			if sent != fails-1 {
				t.Errorf("%d packets were sent, and the one numbered %d failed", sent, fails)
			}
			if told := p.told(); !slices.Equal(told, []string{voiceLost}) {
				t.Errorf("packet %d: told %q", fails, told)
			}
		})
	}
}

// What cannot be is refused with what there is, and nothing changes.
func TestOpusThatCannotBe(t *testing.T) {
	const none, rates = "pcm16; opus is in what make run builds, with libopus", "8000, 12000, 16000, 24000, 48000 for opus"
	for _, test := range []struct {
		codec speech.Codec
		audio protocol.AudioFormats
		words string
	}{
		{nil, protocol.AudioFormats{Input: opus(16000, "json")}, "audio.input.encoding. What it has: " + none},
		{nil, protocol.AudioFormats{Output: opus(24000, "json")}, "audio.output.encoding. What it has: " + none},
		{&tape{}, protocol.AudioFormats{Input: opus(44100, "json")}, "audio.input.rate. What it has: " + rates},
		{&tape{}, protocol.AudioFormats{Output: opus(22050, "json")}, "audio.output.rate. What it has: " + rates},
		{&tape{}, protocol.AudioFormats{Input: opus(16000, "ogg")}, "audio.input.framing. What it has: json or binary"},
		{&tape{}, protocol.AudioFormats{Input: &protocol.Format{Encoding: "mp3", Rate: 16000, Framing: "json"}}, "audio.input.encoding. What it has: pcm16 or opus"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := version2(agentBacked(nil, tells(story)))
			cfg.Codec, cfg.Voices = test.codec, named(&drone{rate: 24000})
			p := &player{client: start(t, cfg)}
			p.join()
			p.send(protocol.SessionStart{Audio: &test.audio}, sessionStart)
			synctest.Wait()
			if told := p.told(); !slices.Equal(told, []string{"unsupported: This gateway cannot give that " + test.words + ". Nothing changed."}) {
				t.Errorf("told %q", told)
			}
			if ready, _ := last[protocol.SessionReady](p); ready.Audio.Input.Encoding != "pcm16" || ready.Audio.Output != nil {
				t.Errorf("in force is %+v", ready.Audio)
			}
		})
	}
}

// A conversation in Opus that is taken up by a build without it goes on as PCM16, and its client is told.
func TestARestartWithoutTheCodec(t *testing.T) {
	for _, codec := range []speech.Codec{&tape{}, nil} {
		synctest.Test(t, func(t *testing.T) {
			var m memory
			cfg := m.config()
			cfg.Codec, cfg.Voices = &tape{}, named(&drone{rate: 24000})
			c := start(t, cfg)
			c.join()
			c.send(protocol.SessionStart{Audio: &protocol.AudioFormats{Input: opus(48000, "binary"), Output: opus(24000, "json")}})
			synctest.Wait()
			c.cancel(session.ErrShutdown)
			<-c.ended

			cfg = m.config()
			cfg.Codec, cfg.Voices = codec, named(&drone{rate: 24000})
			s, _, err := session.Restore(cfg, session.Stored{ID: sessionID, State: m.state, Events: m.events})
			if err != nil {
				t.Fatal(err)
			}
			go s.Run(t.Context())
			next := &client{t: t, session: s}
			if err := s.Join(t.Context(), next, session.Hello{Resume: true, Token: token, After: 1}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			in, out := *opus(48000, "binary"), *opus(24000, "json")
			if codec == nil {
				in.Encoding, out.Encoding = "pcm16", "pcm16"
			}
			if ready, _ := last[protocol.SessionReady](&player{client: next}); *ready.Audio.Input != in || *ready.Audio.Output != out {
				t.Errorf("codec %v: in force is %+v, %+v", codec, ready.Audio.Input, ready.Audio.Output)
			}
			next.send(protocol.SessionClose{})
		})
	}
}

// A journal of a session in Opus makes the same packets again, given the same codec; without one it says what is missing.
func TestAJournalOfOpus(t *testing.T) {
	var journal file
	synctest.Test(t, func(t *testing.T) {
		cfg := version2(agentBacked(keeps(new([]int16)), tells(story)))
		cfg.Codec, cfg.Voices = &tape{}, named(&drone{rate: 24000})
		cfg.Journal = func() io.WriteCloser { return &journal }
		ctx, end := context.WithCancelCause(t.Context())
		ended := make(chan struct{})
		c := &client{t: t, session: session.New(cfg)}
		if err := c.session.Configure(protocol.SessionStart{Audio: &protocol.AudioFormats{Input: opus(16000, "binary"), Output: opus(24000, "json")}}); err != nil {
			t.Fatal(err)
		}
		go func() { defer close(ended); c.session.Run(ctx) }()
		c.join()
		list, _ := packets(t, 2)
		c.send(session.Audio{PCM: list[0]}, session.Audio{PCM: []byte("noise")}, session.Audio{PCM: list[1]}, commit)
		time.Sleep(time.Minute)
		synctest.Wait()
		end(session.ErrShutdown)
		<-ended
	})
	r, err := session.Replay(bytes.NewReader(journal.Bytes()), deterministic.Engine{}, &tape{})
	if err != nil || r.Different != nil || r.Events < 50 {
		t.Errorf("%d events; %+v, %v", r.Events, r.Different, err)
	}
	r, err = session.Replay(bytes.NewReader(journal.Bytes()), deterministic.Engine{}, &tape{fails: 7})
	if err != nil || r.Different == nil {
		t.Errorf("with another codec: %+v, %v", r, err)
	}
	if _, err = session.Replay(bytes.NewReader(journal.Bytes()), deterministic.Engine{}, nil); err == nil || !strings.Contains(err.Error(), "opus is in what make run builds") {
		t.Errorf("without a codec: %v", err)
	}
}
