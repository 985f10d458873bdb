package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"time"

	"vela/gateway"
	"vela/session/speech"
)

type hearCmd struct {
	Files       []string   `arg:"" help:"WAV files, PCM of any rate and up to 8 channels."`
	Config      configFile `help:"File that says which ears there are; vela.yaml in this folder, where there is one, unless given." placeholder:"FILE" env:"VELA_CONFIG"`
	SpeechModel string     `help:"Folder of PocketSphinx's model; where the system keeps it, unless given." placeholder:"DIR" env:"VELA_SPEECH_MODEL"`
	JSON        bool       `help:"Print one JSON object a line, with how long the speech is and how long it took."`
}

// heard is what one ear made of one file.
type heard struct {
	Ear      string `json:"ear"`
	File     string `json:"file"`
	Text     string `json:"text"`
	SpeechMs int64  `json:"speechMs"`
	TookMs   int64  `json:"tookMs"`
	Error    string `json:"error,omitempty"`
}

// Run lets each ear hear each file, as many at a time as there are processors.
func (c *hearCmd) Run(ctx context.Context, io streams) error {
	file, err := c.Config.read()
	if err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{Agents: file, Speech: gateway.Speech{Model: c.SpeechModel}})
	if err != nil {
		return err
	}
	spoken := make([][]int16, len(c.Files))
	for i, name := range c.Files {
		if spoken[i], err = readSpeech(name); err != nil {
			return err
		}
	}
	ears, free := g.Ears()
	defer free()
	if len(ears) == 0 {
		return fmt.Errorf("there is no recogniser: run vela engines to see why")
	}
	failed := 0
	for _, e := range ears {
		for _, h := range hearAll(ctx, e, c.Files, spoken) {
			if h.Error != "" {
				failed++
			}
			if err := c.print(io, h, len(ears) > 1); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d could not be recognised", failed, len(ears)*len(c.Files))
	}
	return ctx.Err()
}

func hearAll(ctx context.Context, e gateway.Ear, files []string, spoken [][]int16) []heard {
	list := make([]heard, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.NumCPU(), len(files)) {
		workers.Go(func() {
			for i := range next {
				list[i] = hearOne(ctx, e, files[i], spoken[i])
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	workers.Wait()
	return list
}

func hearOne(ctx context.Context, e gateway.Ear, file string, samples []int16) heard {
	began := time.Now()
	text, err := e.Hear(ctx, samples)
	h := heard{
		Ear: e.Label, File: file, Text: text,
		SpeechMs: speech.Duration(len(samples), speech.Rate).Milliseconds(), TookMs: time.Since(began).Milliseconds(),
	}
	if err != nil {
		h.Error = err.Error()
	}
	return h
}

func (c *hearCmd) print(io streams, h heard, several bool) error {
	if c.JSON {
		return json.NewEncoder(io.out).Encode(h)
	}
	if h.Error != "" {
		_, err := fmt.Fprintf(io.err, "%s, %s: %s\n", h.Ear, h.File, h.Error)
		return err
	}
	what := h.Text
	if several {
		what = h.Ear + ": " + what
	}
	if len(c.Files) > 1 {
		what = h.File + ": " + what
	}
	_, err := fmt.Fprintln(io.out, what)
	return err
}
