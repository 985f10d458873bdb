package client

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"vela/session/speech"
)

// cuts is a [speech.Codec] whose packets are as long as their sound, and that counts its streams.
type cuts struct{ streams int }

func (c *cuts) Encoder(rate int) (speech.Encoder, error) {
	if c.streams++; rate == 8000 {
		return nil, errors.New("no such rate")
	}
	return cut(rate), nil
}

func (*cuts) Decoder(int) (speech.Decoder, error) { return nil, errors.New("nobody decodes here") }

type cut int

func (c cut) Encode(samples []int16) ([]byte, error) {
	if len(samples) != speech.Count(speech.PacketLength, int(c)) {
		return nil, errors.New("no packet")
	}
	if samples[0] == 13 {
		return nil, errors.New("not that one")
	}
	return speech.Bytes(samples), nil
}

// Speech of any length becomes whole packets of one stream, the last one filled up with silence.
func TestPackets(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 639: 1, 640: 1, 641: 2, 1280: 2} {
		codec := &cuts{}
		p := packer{codec: codec}
		samples := slices.Repeat([]int16{7}, n)
		var got []int16
		for range 2 {
			packets, err := p.pack(samples, speech.Rate)
			if err != nil || len(packets) != want {
				t.Fatalf("%d samples are %d packets, %v; want %d", n, len(packets), err, want)
			}
			got = speech.Samples(slices.Concat(packets...))
		}
		if len(got) != want*640 || !slices.Equal(got[:n], samples) || slices.ContainsFunc(got[n:], func(s int16) bool { return s != 0 }) {
			t.Errorf("%d samples became %d", n, len(got))
		}
		if codec.streams != 1 {
			t.Errorf("they are %d streams", codec.streams)
		}
		if _, err := p.pack(samples, 48000); err != nil || codec.streams != 2 {
			t.Errorf("at another rate: %d streams, %v", codec.streams, err)
		}
	}
}

func TestPacketsThatCannotBe(t *testing.T) {
	p := packer{}
	if _, err := p.pack(make([]int16, 640), speech.Rate); !errors.Is(err, errNoCodec) {
		t.Errorf("without a codec: %v", err)
	}
	p.codec = &cuts{}
	if _, err := p.pack(make([]int16, 320), 8000); err == nil || !strings.Contains(err.Error(), "no such rate") {
		t.Errorf("at a rate that is none: %v", err)
	}
	if _, err := p.pack([]int16{13}, speech.Rate); err == nil || !strings.Contains(err.Error(), "not that one") {
		t.Errorf("of what cannot be encoded: %v", err)
	}
}

// SendAudio may be called from any goroutine, so packets are made one after the other.
func TestPacketsFromSeveralGoroutines(t *testing.T) {
	codec := &cuts{}
	p := packer{codec: codec}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if _, err := p.pack([]int16{1}, speech.Rate); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if codec.streams != 1 {
		t.Errorf("they are %d streams", codec.streams)
	}
}
