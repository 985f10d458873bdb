//go:build cgo && opus

// Command rooms measures the gateway in rooms of the real LiveKit server: how soon what an agent does is with who is there
// and how many events a second, what a room costs, and what the way through a room adds to sound. Recogniser, voice and
// model cost little and are this program itself (services.go), and so are the people in the rooms (person.go): what is
// measured is the gateway's process alone.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/livekit/protocol/logger"
	lksdk "github.com/livekit/server-sdk-go/v2"

	"vela/e2e/bench/proc"
)

func main() {
	vela := flag.String("vela", "../bin/vela", "the gateway's program")
	livekit := flag.String("livekit", "../bin/livekit-server", "the LiveKit server's program")
	only := flag.String("only", "", "events, load or delay; all unless given")
	flag.Parse()
	log.SetFlags(0)
	lksdk.SetLogger(logger.GetDiscardLogger())
	fmt.Printf("%s, %d CPUs shared with the load, %s\n\n", time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.Version())
	if err := measure(*vela, *livekit, *only); err != nil {
		log.Fatalln("rooms:", err)
	}
}

func measure(vela, livekit, only string) error {
	mic, err := newSpeech("what time is it")
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Printf("rooms are not measured: flite is not installed\n\n")
		return nil
	}
	if err != nil {
		return err
	}
	s, err := newServices()
	if err != nil {
		return err
	}
	server, err := startLiveKit(livekit)
	if err != nil {
		return err
	}
	defer server.stop()
	for _, m := range []struct {
		name    string
		measure func(*proc.Process, *services, *speech) error
	}{{"events", events}, {"load", load}, {"delay", delay}} {
		if only != "" && only != m.name {
			continue
		}
		if err := with(vela, s, func(p *proc.Process) error { return m.measure(p, s, mic) }); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// with runs a gateway whose recogniser, voice and model are the services, and whose rooms are hands-free.
func with(program string, s *services, measure func(*proc.Process) error) error {
	dir, err := os.MkdirTemp("", "vela-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "vela.yaml")
	err = os.WriteFile(file, fmt.Appendf(nil, "agents:\n  model: {kind: openai, url: \"http://%s/v1\", model: bench, tools: {root: %q}}\n"+
		"ears:\n  - {kind: openai, url: \"http://%[1]s/v1\", model: bench}\n"+
		"voices:\n  - {kind: openai, url: \"http://%[1]s/v1\", model: bench, voice: bench, rate: %[3]d}\n"+
		"livekit: {hands_free: true}\n", s.addr, dir, rate), 0o600)
	if err != nil {
		return err
	}
	p, err := proc.Start(program, "serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--turns", "agent", "--config", file)
	if err != nil {
		return err
	}
	defer p.Stop()
	return measure(p)
}

func percentile(values []time.Duration, p float64) time.Duration {
	slices.Sort(values)
	return values[min(len(values)-1, int(p*float64(len(values))))]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
