// Command bench measures the gateway beside its floor, a bare WebSocket server (bench/bare), in one run on one machine,
// and prints ratios. Both are processes of their own; the rounds alternate between them, and the median counts.
package main

import (
	"encoding/base64"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"time"

	"vela/e2e/bench/proc"
)

func main() {
	vela := flag.String("vela", "../bin/vela", "the gateway's program")
	bare := flag.String("bare", "../bin/bare", "the bare server's program")
	model := flag.String("model", "../bin/model", "the model's program")
	speech := flag.String("speech", "../bin/speech", "the program of the recogniser and the voice")
	rounds := flag.Int("rounds", 5, "how often to alternate")
	each := flag.Duration("each", 3*time.Second, "how long each round trip measurement takes")
	only := flag.String("only", "", "trips, memory, cancel, resume, agents, voice, share, duplex or signals; all unless given")
	flag.Parse()
	log.SetFlags(0)
	fmt.Printf("%s, %d CPUs shared with the load, %s, rounds of %s, medians of %d\n\n",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), *each, *rounds)
	b := bench{vela: *vela, bare: *bare, model: *model, speech: *speech, rounds: *rounds, each: *each}
	for _, m := range []struct {
		name    string
		measure func() error
	}{{"trips", b.trips}, {"memory", b.memory}, {"cancel", b.cancel}, {"resume", b.resume}, {"agents", b.agents}, {"voice", b.voice}, {"share", b.share}, {"duplex", b.duplex}, {"signals", b.signals}} {
		if *only != "" && *only != m.name {
			continue
		}
		if err := m.measure(); err != nil {
			log.Println("bench:", m.name, err)
			os.Exit(1)
		}
	}
}

type bench struct {
	vela, bare, model, speech string
	rounds                    int
	each                      time.Duration
}

// What every measurement sends: 640 bytes of audio, 20 ms, as one append. answer is the size of what comes back.
var (
	appendFrame = frame(`{"type":"input_audio.append","payload":{"chunk":"` + base64.StdEncoding.EncodeToString(make([]byte, 640)) + `"}}`)
	commitFrame = frame(`{"type":"input_audio.commit","payload":{}}`)
	cancelFrame = frame(`{"type":"response.cancel","payload":{}}`)
	answer      = len(`{"type":"transcript.partial","payload":{"text":"[mocked partial] Placeholder push-to-talk transcript in progress (10000 chunks)."}}`)
)

func (b *bench) startBoth(args ...string) (vela, bare *proc.Process, err error) {
	vela, err = proc.Start(b.vela, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--max-sessions", "10000"}, args...)...)
	if err != nil {
		return nil, nil, err
	}
	bare, err = proc.Start(b.bare, "-size", fmt.Sprint(answer))
	if err != nil {
		vela.Stop()
	}
	return vela, bare, err
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func percentile(values []time.Duration, p float64) time.Duration {
	slices.Sort(values)
	return values[min(len(values)-1, int(p*float64(len(values))))]
}
