//go:build cgo && opus

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/hraban/opus.v2"
)

const (
	rate      = 16000 // Hz, of all sound here
	piece     = 20 * time.Millisecond
	pieceSize = 320 // samples
	loud      = 500 // what is below is no speech
)

// speech is what a person says, piece by piece, as both kinds of clients send it; and silence.
type speech struct {
	pcm, packets  [][]byte // PCM16, and Opus
	hush, silence []byte   // a piece of silence, as PCM16 and as Opus
}

// newSpeech has flite say a text, without the silence around it.
func newSpeech(text string) (*speech, error) {
	samples, err := flite(text)
	if err != nil {
		return nil, err
	}
	enc, err := opus.NewEncoder(rate, 1, opus.AppVoIP)
	if err != nil {
		return nil, err
	}
	s := &speech{hush: make([]byte, 2*pieceSize)}
	buf := make([]byte, 1500)
	for from := 0; from+pieceSize <= len(samples); from += pieceSize {
		one := samples[from : from+pieceSize]
		n, err := enc.Encode(one, buf)
		if err != nil {
			return nil, err
		}
		s.pcm, s.packets = append(s.pcm, binary16(one)), append(s.packets, bytes.Clone(buf[:n]))
	}
	for range 10 { // until the encoder has forgotten what was said
		n, err := enc.Encode(make([]int16, pieceSize), buf)
		if err != nil {
			return nil, err
		}
		s.silence = bytes.Clone(buf[:n])
	}
	return s, nil
}

// flite lets it speak a text. Its WAV files have a header of 44 bytes, and 16 kHz.
func flite(text string) ([]int16, error) {
	dir, err := os.MkdirTemp("", "vela-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
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
	samples := make([]int16, (len(wav)-44)/2)
	if _, err := binary.Decode(wav[44:], binary.LittleEndian, samples); err != nil {
		return nil, err
	}
	first, last := 0, len(samples)
	for first < last && abs(samples[first]) < loud {
		first++
	}
	for last > first && abs(samples[last-1]) < loud {
		last--
	}
	return samples[first:last], nil
}

func abs(s int16) int16 { return max(s, -s) }

func binary16(samples []int16) []byte {
	b := make([]byte, 0, 2*len(samples))
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}
