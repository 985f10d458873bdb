package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"vela/session/speech"
)

// answerRate is how answers are played and recorded, in Hz.
const answerRate = 24000

// sink is where the sound of answers goes. It belongs to one goroutine.
type sink interface {
	// write takes sound, mono at answerRate, that follows what came before. It says what a person should know, if
	// anything, and whether it goes on taking sound.
	write(samples []int16) (note string, ok bool)
	// cut forgets what has been taken and not been heard.
	cut()
	// end says that no more of an answer comes.
	end()
	// close follows the last answer, and returns when it has been heard.
	close() error
	// at once says whether what is taken counts as heard, because nobody listens yet.
	atOnce() bool
}

// newSink is the file if there is one, or else a player.
func newSink(file string) (sink, error) {
	if file == "" {
		return newPlayer()
	}
	// Whoever cannot write it is told so now, and not after the conversation.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("cannot write the answer: %w", err)
	}
	return &recorder{file: f}, nil
}

// players play PCM16 little-endian, mono, from their standard input, each with little of it waiting. afplay is not one of
// them: it plays files alone.
var players = [][]string{
	{"paplay", "--raw", "--format=s16le", "--rate=" + hertz, "--channels=1", "--latency-msec=100"},
	{"aplay", "-q", "-t", "raw", "-f", "S16_LE", "-r", hertz, "-c", "1", "--buffer-time=100000"},
	{"play", "-q", "-t", "raw", "-e", "signed", "-b", "16", "-L", "-r", hertz, "-c", "1", "-"}, // SoX
	{"ffplay", "-loglevel", "error", "-nodisp", "-autoexit", "-f", "s16le", "-ar", hertz, "-ch_layout", "mono", "-i", "-"},
}

var hertz = strconv.Itoa(answerRate)

var errNoPlayer = errors.New("nothing here plays sound: install paplay (pulseaudio-utils), aplay (alsa-utils), play (sox) or ffplay (ffmpeg), or write it with --out FILE.wav")

// player plays each answer with a process of its own.
type player struct {
	left    [][]string // the commands that are there and have not failed
	running *process   // nil between answers
	ending  *process   // one that plays what it still has
}

func newPlayer() (*player, error) {
	p := &player{}
	for _, argv := range players {
		if _, err := exec.LookPath(argv[0]); err == nil {
			p.left = append(p.left, argv)
		}
	}
	if len(p.left) == 0 {
		return nil, errNoPlayer
	}
	return p, nil
}

func (p *player) atOnce() bool { return false }

// write starts a command where none runs. One that fails is not tried again, and the next one goes on with the sound.
func (p *player) write(samples []int16) (note string, ok bool) {
	var failed []string
	for len(p.left) > 0 {
		err := p.writeTo(p.left[0], samples)
		if err == nil {
			return strings.Join(failed, "; "), true
		}
		failed = append(failed, fmt.Sprintf("%s does not play: %v", p.left[0][0], err))
		p.left = p.left[1:]
	}
	failed = append(failed, "the answers are text from now on; --out FILE.wav would write them")
	return strings.Join(failed, "; "), false
}

func (p *player) writeTo(argv []string, samples []int16) error {
	if p.running == nil {
		if p.ending != nil {
			p.ending.kill()
			p.ending = nil
		}
		started, err := startProcess(argv)
		if err != nil {
			return err
		}
		p.running = started
	}
	err := p.running.write(speech.Bytes(samples))
	if err != nil {
		p.running = nil
	}
	return err
}

func (p *player) cut() {
	for _, one := range []*process{p.running, p.ending} {
		if one != nil {
			one.kill()
		}
	}
	p.running, p.ending = nil, nil
}

func (p *player) end() {
	if p.running != nil {
		p.running.in.Close()
		p.running, p.ending = nil, p.running
	}
}

// playsOn is how long a player may take to play what it has.
const playsOn = 3 * time.Second

func (p *player) close() error {
	p.end()
	if p.ending != nil {
		select {
		case <-p.ending.over:
		case <-time.After(playsOn):
		}
		p.cut()
	}
	return nil
}

// process is a command that plays.
type process struct {
	in     *os.File
	cmd    *exec.Cmd
	over   chan struct{} // closed when it has ended
	failed error         // how, once it has
	said   bytes.Buffer  // on its standard error, once it has
}

func startProcess(argv []string) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{in: w, cmd: exec.Command(argv[0], argv[1:]...), over: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stderr, p.cmd.WaitDelay = r, &p.said, time.Second
	err = p.cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		return nil, err
	}
	go func() {
		defer close(p.over)
		p.failed = p.cmd.Wait()
	}()
	return p, nil
}

// takes is how long a player may take no sound. A pipe holds more than a second of it, and no gateway sends as much ahead.
const takes = 2 * time.Second

// write gives it sound. With an error it has ended.
func (p *process) write(pcm []byte) error {
	err := p.in.SetWriteDeadline(time.Now().Add(takes))
	if err == nil {
		_, err = p.in.Write(pcm)
	}
	if err == nil {
		return nil
	}
	p.kill()
	if lines := strings.Split(strings.TrimSpace(p.said.String()), "\n"); lines[0] != "" {
		return errors.New(clean(lines[0]))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("it takes no sound")
	}
	return fmt.Errorf("it ended (%w)", p.failed)
}

// kill ends it, and returns when it has ended.
func (p *process) kill() {
	p.in.Close()
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.over
}

// recorder keeps the sound of answers for a file, one behind the other.
type recorder struct {
	file    *os.File
	samples []int16
}

// longestRecord bounds what is recorded: it waits in memory.
const longestRecord = time.Hour

func (r *recorder) atOnce() bool { return true }

func (r *recorder) write(samples []int16) (note string, ok bool) {
	if speech.Duration(len(r.samples)+len(samples), answerRate) > longestRecord {
		return fmt.Sprintf("more than %v of sound: the rest is not written", longestRecord), false
	}
	r.samples = append(r.samples, samples...)
	return "", true
}

func (r *recorder) cut() {}

func (r *recorder) end() {}

// close writes it. Where nothing was spoken, whatever was there stays.
func (r *recorder) close() error {
	if len(r.samples) == 0 {
		if info, err := r.file.Stat(); err == nil && info.Size() == 0 {
			_ = os.Remove(r.file.Name())
		}
		return r.file.Close()
	}
	err := speech.WriteWAV(r.file, answerRate, r.samples)
	if err == nil {
		err = r.file.Truncate(44 + int64(len(r.samples))*speech.BytesPerSample)
	}
	if closed := r.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	return nil
}
