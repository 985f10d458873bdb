package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"vela/e2e/bench/proc"
)

const (
	shareSessions = 100
	shareStage    = 50 * time.Millisecond // of the recogniser, and of the voice
	sharePause    = 3 * time.Second       // at most, before each turn
)

// speechFile is a vela.yaml whose ears and voice are the program bench/speech at addr. The built-in agent answers.
func speechFile(addr string) (string, error) {
	dir, err := os.MkdirTemp("", "vela-bench-")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "vela.yaml")
	return name, os.WriteFile(name, fmt.Appendf(nil, "ears:\n  - {kind: openai, url: \"http://%s/v1\", model: bench}\n"+
		"voices:\n  - {kind: openai, url: \"http://%[1]s/v1\", model: bench, voice: bench, rate: 16000}\n", addr), 0o600)
}

// share measures the gateway's own share of a spoken turn: what there is between the end of speech and the first sound
// beside what its recogniser and its voice take, which is 50 ms each, with 100 sessions at once. The floor asks the two
// one after the other, without a gateway.
func (b *bench) share() error {
	speech, err := proc.Start(b.speech, "-hears", shareStage.String(), "-speaks", shareStage.String())
	if err != nil {
		return err
	}
	defer speech.Stop()
	file, err := speechFile(speech.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(file)) }()
	vela, err := proc.Start(b.vela, "serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--config", file, "--resume", "1s")
	if err != nil {
		return err
	}
	defer vela.Stop()
	var share, own, floor []time.Duration
	for range max(1, b.rounds/2) {
		bare, err := atOnce(2*b.each, func(end time.Time, add func(...time.Duration)) error { return askBoth(speech.Addr, end, add) })
		if err != nil {
			return err
		}
		floor = append(floor, bare[0]...)
		mine, err := atOnce(2*b.each, func(end time.Time, add func(...time.Duration)) error { return speakTurns(vela.Addr, end, add) })
		if err != nil {
			return err
		}
		share, own = append(share, mine[0]...), append(own, mine[1]...)
	}
	fmt.Printf("from the end of speech to the first sound, without the 100 ms of recogniser and voice, %d sessions, %d turns\n", shareSessions, len(share))
	fmt.Printf("  bare   p50 %6.2f ms, p99 %6.2f ms, the two asked one after the other\n", ms(percentile(floor, 0.5)), ms(percentile(floor, 0.99)))
	fmt.Printf("  vela   p50 %6.2f ms, p99 %6.2f ms (aim: p99 under 10 ms)\n", ms(percentile(share, 0.5)), ms(percentile(share, 0.99)))
	fmt.Printf("  gatewayMs of turn.metrics: p50 %.0f, p99 %.0f\n", ms(percentile(own, 0.5)), ms(percentile(own, 0.99)))
	fmt.Printf("  ratio  %8.2f times the bare p99\n\n", ms(percentile(share, 0.99))/ms(percentile(floor, 0.99)))
	return nil
}

// atOnce runs 100 of something until the time is over, and returns what they add, by its place.
func atOnce(long time.Duration, run func(end time.Time, add func(...time.Duration)) error) (all [2][]time.Duration, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := time.Now().Add(long)
	for range shareSessions {
		wg.Go(func() {
			failed := run(end, func(took ...time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				for i, t := range took {
					all[i] = append(all[i], t)
				}
			})
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
			}
		})
	}
	wg.Wait()
	if err == nil && len(all[0]) == 0 {
		err = errors.New("no turn was whole")
	}
	return all, err
}

// shareClient keeps as many connections as there are sessions.
var shareClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: shareSessions}}

// askBoth has a recording recognised, and what comes of it spoken, as the gateway does.
func askBoth(addr string, end time.Time, add func(...time.Duration)) error {
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	file, err := parts.CreateFormFile("file", "speech.wav")
	if err == nil {
		_, err = file.Write(make([]byte, 44+10*voiceBytes))
	}
	if err = errors.Join(err, parts.WriteField("model", "bench"), parts.Close()); err != nil {
		return err
	}
	for time.Now().Before(end) {
		time.Sleep(rand.N(sharePause))
		from := time.Now()
		resp, err := shareClient.Post("http://"+addr+"/v1/audio/transcriptions", parts.FormDataContentType(), bytes.NewReader(form.Bytes()))
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		resp, err = shareClient.Post("http://"+addr+"/v1/audio/speech", "application/json", strings.NewReader(`{"model":"bench","input":"You said: how far is the harbour","voice":"bench","response_format":"pcm"}`))
		if err != nil {
			return err
		}
		_, err = io.ReadFull(resp.Body, make([]byte, 2*voiceBytes)) // 40 ms, as much as the gateway sends at once
		add(time.Since(from) - 2*shareStage)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// speakTurns speaks one turn after the other, and breaks each answer off at its first sound.
func speakTurns(addr string, end time.Time, add func(...time.Duration)) error {
	c, err := dial(addr, "", version2)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(voiceStart); err != nil {
		return err
	}
	if err := c.until(`"idle"`); err != nil {
		return err
	}
	for time.Now().Before(end) {
		time.Sleep(rand.N(sharePause))
		if err := c.spokenTurn(add); err != nil {
			return err
		}
	}
	_, err = c.Write(frame(`{"type":"session.close","payload":{}}`))
	return err
}

var shareSpeech = bytes.Repeat(appendFrame, 10)

func (c *conn) spokenTurn(add func(...time.Duration)) error {
	if _, err := c.Write(append(shareSpeech[:len(shareSpeech):len(shareSpeech)], commitFrame...)); err != nil {
		return err
	}
	from, took := time.Now(), time.Duration(0)
	for {
		m, err := c.next()
		if err != nil {
			return err
		}
		switch is := func(kind string) bool { return bytes.HasPrefix(m, []byte(`{"type":"`+kind+`"`)) }; {
		case is("response.audio.delta") && took == 0:
			took = time.Since(from) - 2*shareStage
			if _, err := c.Write(cancelFrame); err != nil {
				return err
			}
		case is("turn.metrics"):
			var e struct{ Payload voiced }
			if err := json.Unmarshal(m, &e); err != nil {
				return err
			}
			add(took, time.Duration(e.Payload.GatewayMs*float64(time.Millisecond)))
		case is("error"):
			return fmt.Errorf("the gateway says %s", m)
		case is("session.state") && bytes.Contains(m, []byte(`"idle"`)):
			return nil
		}
	}
}
