package protocol_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"vela/protocol"
)

func TestAudioMessages(t *testing.T) {
	sound := []byte{1, 2, 3, 4, 5} // as Opus may be: an odd number of bytes
	m := protocol.ResponseAudioDelta{ResponseID: "r12", StartMs: 70_000, Chunk: base64.StdEncoding.EncodeToString(sound), Text: "ahoy"}
	frame := protocol.AppendAudio([]byte("before"), 1<<32|7, m)
	want := append([]byte("before\x0c\x00\x00\x00\x70\x11\x01\x00\x07\x00\x00\x00\x00\x00\x00\x00"), sound...)
	if !bytes.Equal(frame, want) {
		t.Fatalf("the message is %x, want %x", frame, want)
	}
	a, err := protocol.DecodeAudio(frame[len("before"):])
	if err != nil || a.Response != 12 || a.StartMs != 70_000 || a.Seq != 7 || !bytes.Equal(a.Sound, sound) {
		t.Errorf("it is read as %+v, %v", a, err)
	}
	m.Filler = true
	want[len("before")+12] = 1
	if frame = protocol.AppendAudio([]byte("before"), 1<<32|7, m); !bytes.Equal(frame, want) {
		t.Errorf("a phrase is %x, want %x", frame, want)
	}
	if a, err := protocol.DecodeAudio(frame[len("before"):]); err != nil || !a.Filler {
		t.Errorf("a phrase is read as %+v, %v", a, err)
	}
	m.Chunk = "no base64"
	if frame := protocol.AppendAudio([]byte("before"), 1, m); string(frame) != "before" {
		t.Errorf("what is no sound is written as %x", frame)
	}
	for _, bad := range [][]byte{nil, make([]byte, 15)} {
		if a, err := protocol.DecodeAudio(bad); err == nil {
			t.Errorf("%d bytes are read as %+v", len(bad), a)
		}
	}
}

func FuzzDecodeAudio(f *testing.F) {
	f.Add(make([]byte, 20))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if a, err := protocol.DecodeAudio(frame); err == nil && len(a.Sound) != len(frame)-16 {
			t.Errorf("of %d bytes %d are sound", len(frame), len(a.Sound))
		}
	})
}
