package wavcommand

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"vela/protocol"
	"vela/session/speech"
)

// TestMain is also the command that the tests run: this program with "speak" before the way in which it does.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "speak" {
		os.Exit(speak(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// speak writes a sample for each byte of the text, at 16 kHz, unless how says otherwise. A name in more is that of a FIFO, which it and its child say
// that they live in.
func speak(how string, more []string) int {
	if len(more) > 0 {
		alive, err := os.OpenFile(more[0], os.O_WRONLY, 0)
		if err != nil {
			return 9
		}
		fmt.Fprint(alive, "+")
		if how != "child" {
			child := exec.Command(os.Args[0], "speak", "child", more[0])
			out, err := child.StdoutPipe()
			if err != nil || child.Start() != nil {
				return 9
			}
			if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // it holds the FIFO, too
				return 9
			}
		}
	}
	if how == "child" {
		fmt.Print("+")
		time.Sleep(time.Hour)
	}
	text, _ := io.ReadAll(os.Stdin)
	var wav bytes.Buffer
	if err := speech.WriteWAV(&wav, 16000, make([]int16, len(text))); err != nil {
		return 9
	}
	file, le := wav.Bytes(), binary.LittleEndian
	switch how {
	case "forever":
		time.Sleep(time.Hour)
	case "begins":
		os.Stdout.Write(file[:44+4])
		time.Sleep(time.Hour)
	case "dies":
		os.Stdout.Write(file[:44+4])
		fmt.Fprintln(os.Stderr, "no more breath")
		return 3
	case "placeholder":
		le.PutUint32(file[40:], 0x7FFFF000)
	case "zero":
		le.PutUint32(file[40:], 0)
	case "shorter":
		le.PutUint32(file[40:], 4)
		file = append(file, make([]byte, 256<<10)...) // more than a pipe holds
	case "rate":
		le.PutUint32(file[24:], 7)
	case "24 kHz":
		le.PutUint32(file[24:], 24000)
	case "garbage":
		file = bytes.Repeat([]byte("garbage "), 1<<20)
	case "nothing":
		file = nil
	case "endless":
		le.PutUint32(file[40:], math.MaxUint32)
		os.Stdout.Write(file[:44])
		for file = make([]byte, 1<<16); ; {
			if _, err := os.Stdout.Write(file); err != nil {
				return 0
			}
		}
	case "talks":
		fmt.Fprint(os.Stderr, strings.Repeat("talk ", 1<<20))
	case "deaf":
		os.Stdin.Close()
	case "seeks":
		out, err := os.OpenFile("/dev/stdout", os.O_RDWR|os.O_TRUNC, 0)
		if err != nil {
			return 9
		}
		out.Write(make([]byte, len(file)))
		if _, err := out.WriteAt(file, 0); err != nil {
			return 9
		}
		return 0
	}
	if _, err := os.Stdout.Write(file); err != nil {
		return 1
	}
	return 0
}

func command(t *testing.T, how ...string) *Synthesizer {
	t.Helper()
	s, err := New(Config{Argv: append([]string{os.Args[0], "speak"}, how...), Processes: 2, Seekable: how[0] == "seeks"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listen hears a sentence to its end.
func listen(ctx context.Context, s *Synthesizer, text string) (samples, rate int, err error) {
	for c, err := range s.Synthesize(ctx, text) {
		if err != nil {
			return samples, rate, err
		}
		if rate != 0 && rate != c.Rate || len(c.Samples) == 0 || c.Duration() > speech.LongestChunk {
			return samples, rate, fmt.Errorf("a chunk of %d samples at %d Hz", len(c.Samples), c.Rate)
		}
		samples, rate = samples+len(c.Samples), c.Rate
	}
	return samples, rate, nil
}

func TestSpeaks(t *testing.T) {
	text := strings.Repeat("-x; rm ", 200)
	for _, c := range []struct {
		how           string
		samples, rate int
	}{
		{"plainly", len(text), 16000}, {"placeholder", len(text), 16000}, {"zero", len(text), 16000}, {"shorter", 2, 16000},
		{"24 kHz", len(text), 24000}, {"talks", len(text), 16000}, {"deaf", len(text), 16000}, {"seeks", len(text), 16000},
	} {
		t.Run(c.how, func(t *testing.T) {
			samples, rate, err := listen(t.Context(), command(t, c.how), text)
			if c.how == "deaf" { // it may have read what came before
				samples = len(text)
			}
			if err != nil || samples != c.samples || rate != c.rate {
				t.Errorf("%d samples at %d Hz, %v; want %d at %d", samples, rate, err, c.samples, c.rate)
			}
		})
	}
}

func TestFails(t *testing.T) {
	for _, c := range []struct {
		how     string
		samples int
		cause   error
	}{
		{"dies", 2, nil}, {"rate", 0, speech.ErrRate}, {"garbage", 0, speech.ErrNotWAV}, {"nothing", 0, speech.ErrNotWAV},
		{"endless", 10 * 60 * 16000, speech.ErrTooLong},
	} {
		t.Run(c.how, func(t *testing.T) {
			samples, _, err := listen(t.Context(), command(t, c.how), "hello")
			var e *Error
			if !errors.As(err, &e) || e.Code() != protocol.CodeSpeechFailed || samples != c.samples {
				t.Fatalf("%d samples, %v; want %d", samples, err, c.samples)
			}
			if c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("%v, of %v", errors.Unwrap(err), c.cause)
			}
			if strings.Contains(err.Error(), "/") {
				t.Errorf("%q is shown to anybody", err)
			}
		})
	}
}

func TestSaysToTheOperatorWhatTheCommandSaid(t *testing.T) {
	var log bytes.Buffer
	s := command(t, "dies")
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	_, _, err := listen(t.Context(), s, "hello")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("%v", errors.Unwrap(err))
	}
	if !strings.Contains(log.String(), "no more breath") {
		t.Errorf("the log has %q", &log)
	}
	log.Reset()
	s = command(t, "talks")
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	if _, _, err := listen(t.Context(), s, "hello"); err != nil || log.Len() < mostWords/2 || log.Len() > 2*mostWords {
		t.Errorf("%v, and %d bytes in the log", err, log.Len())
	}
}

func TestCutsWhatIsTooLong(t *testing.T) {
	text := strings.Repeat("word ", 2<<20)
	if samples, _, err := listen(t.Context(), command(t, "plainly"), text); err != nil || samples != longestText/5*5-1 {
		t.Errorf("%d samples, %v", samples, err)
	}
}

// family is a FIFO that a command and its child hold; gone waits until nobody does, and returns how many there were.
func family(t *testing.T) (path string, gone func() int) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, func() int {
		born, err := io.ReadAll(f)
		if err != nil {
			t.Error(err)
		}
		return len(born)
	}
}

var errEnough = errors.New("enough")

func TestCancelLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		path, gone := family(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		heard := 0
		var last error
		for c, err := range command(t, "begins", path).Synthesize(ctx, "hello") {
			heard, last = heard+len(c.Samples), err
			cancel(errEnough)
		}
		if heard != 2 || !errors.Is(last, errEnough) {
			t.Errorf("%d samples, then %v", heard, last)
		}
		if n := gone(); n != 2 {
			t.Errorf("%d processes were there", n)
		}
	}
	for runtime.NumGoroutine() > before { // those that have nothing left to do end in their own time; the test's bounds it
		runtime.Gosched()
	}
}

func TestLeavingTheLoopLeavesNothingBehind(t *testing.T) {
	path, gone := family(t)
	for c, err := range command(t, "begins", path).Synthesize(t.Context(), "hello") {
		if err != nil || len(c.Samples) != 2 {
			t.Errorf("%d samples, %v", len(c.Samples), err)
		}
		break
	}
	if n := gone(); n != 2 {
		t.Errorf("%d processes were there", n)
	}
}

func TestAnEndedCommandTakesItsChildrenAlong(t *testing.T) {
	path, gone := family(t)
	if samples, _, err := listen(t.Context(), command(t, "seeks", path), "hello"); err != nil || samples != 5 {
		t.Errorf("%d samples, %v", samples, err)
	}
	if n := gone(); n != 2 {
		t.Errorf("%d processes were there", n)
	}
}

func TestGivesUpOnACommandThatTakesTooLong(t *testing.T) {
	for timeout := time.Second; ; timeout *= 2 {
		path, gone := family(t)
		s := command(t, "forever", path)
		s.cfg.Timeout = timeout
		_, _, err := listen(t.Context(), s, "hello")
		var e *Error
		if !errors.Is(err, errTimeout) || !errors.As(err, &e) || e.Code() != protocol.CodeSpeechFailed {
			t.Errorf("%v, of %v", err, errors.Unwrap(err))
		}
		n := gone()
		if n == 2 {
			return
		}
		if timeout > time.Minute { // on a slow machine the time may be over before both are there
			t.Fatalf("%d processes were there", n)
		}
	}
}

func TestRunsSoManyAtOnce(t *testing.T) {
	s := command(t, "begins")
	var open []func()
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ready, done := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for range s.Synthesize(ctx, "hello") {
				select {
				case ready <- true:
				case <-ctx.Done():
				}
			}
		}()
		<-ready
		open = append(open, func() { cancel(); <-done })
	}
	if len(s.slots) != cap(s.slots) || cap(s.slots) != 2 {
		t.Errorf("%d of %d slots are taken", len(s.slots), cap(s.slots))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	if _, _, err := listen(ctx, s, "hello"); !errors.Is(err, errEnough) {
		t.Errorf("a third one: %v", err)
	}
	for _, end := range open {
		end()
	}
	if len(s.slots) != 0 {
		t.Errorf("%d slots are taken", len(s.slots))
	}
}

func TestWhatIsNotThere(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no command: no error")
	}
	if _, err := New(Config{Argv: []string{"/nowhere/at/all"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such program: %v", err)
	}
	s := command(t, "plainly")
	s.cfg.Argv = []string{"/nowhere/at/all"}
	_, _, err := listen(t.Context(), s, "hello")
	var e *Error
	if !errors.As(err, &e) || e.Code() != protocol.CodeSpeechUnavailable || strings.Contains(err.Error(), "/") {
		t.Errorf("gone since: %v", err)
	}
}
