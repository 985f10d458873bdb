//go:build unix

package midi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pipe makes a named pipe, which is a device.
func pipe(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// play writes to a device.
func play(t *testing.T, path string, b ...byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAddresses(t *testing.T) {
	for want, d := range map[string]Device{
		"midi://unknown/unnamed/midiC0D0":      {Port: "midiC0D0"},
		"midi://A%2FB%20Ltd/K%C3%A4ys%3F/midi": {Port: "midi", Name: "Käys?", Maker: "A/B Ltd"},
	} {
		if got := d.URL(); got != want || portOf(got) != d.Port {
			t.Errorf("%+v is at %s, with the port %q", d, got, portOf(got))
		}
	}
	if d := (Device{Port: "midi1"}); d.ID() != "local:midi:midi1" || d.Label() != "MIDI Device" {
		t.Errorf("%s, %s", d.ID(), d.Label())
	}
	for _, address := range []string{
		"", "midi://", "midi://a/b", "midi://a/b/", "midi://a/b/pcmC0D0", "midi://a/b/%", "http://a/b/midi0", "midi://a/b/..%2Fmidi0", "midi://a/b/midi%2F..%2Fx",
	} {
		if got := portOf(address); got != "" {
			t.Errorf("%s has the port %q", address, got)
		}
	}
}

func TestTheList(t *testing.T) {
	root := t.TempDir()
	f := NewFolder(filepath.Join(root, "snd"))
	f.system = filepath.Join(root, "system")
	if got := f.List(); got != nil {
		t.Errorf("without a folder: %+v", got)
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	pipe(t, f.dir, "midiC1D0")
	pipe(t, f.dir, "midiC1D1")
	pipe(t, f.dir, "midi-keys")
	pipe(t, f.dir, "pcmC0D0p")
	write(t, filepath.Join(f.dir, "midiC9D9"), "no device")
	if err := os.Mkdir(filepath.Join(f.dir, "midi-folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, f.system+"/proc/asound/card1/midi0", "Launchkey \xff\n\nOutput 0\n")
	write(t, f.system+"/sys/devices/usb1/manufacturer", "Focusrite\n")
	if err := os.MkdirAll(f.system+"/sys/devices/usb1/interface", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(f.system+"/sys/class/sound/card1", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../devices/usb1/interface", f.system+"/sys/class/sound/card1/device"); err != nil {
		t.Fatal(err)
	}
	want := []Device{{Port: "midi-keys", Name: "midi-keys"}, {"midiC1D0", "Launchkey", "Focusrite"}, {Port: "midiC1D1", Maker: "Focusrite"}}
	if got := f.List(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// said is the next message, as a signal's type.
func said(t *testing.T, c *Conn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	m, err := c.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, r := range c.Parse(m) {
		text += r.Type + " " + string(r.Payload) + " of " + r.Source
	}
	return text
}

func TestADeviceIsHeard(t *testing.T) {
	dir := t.TempDir()
	f := NewFolder(dir)
	path := pipe(t, dir, "midi-keys")
	c, err := f.Open(f.List()[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	play(t, path, 0x90, 60) // a message in two parts, of two programs
	play(t, path, 100, 62, 0)
	for _, want := range []string{
		`midi.note_on {"channel":1,"note":60,"velocity":100,"raw":[144,60,100]} of midi-keys`,
		`midi.note_off {"channel":1,"note":62,"velocity":0,"raw":[144,62,0]} of midi-keys`,
	} {
		if got := said(t, c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go cancel(enough)
	if _, err := c.Next(ctx); !errors.Is(err, enough) {
		t.Error(err)
	}
}

func TestDevicesThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	f := NewFolder(dir)
	write(t, filepath.Join(dir, "midi-file"), "x")
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "midi-null")); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]error{
		"midi://a/b/midi-gone": errNoDevice, "midi://a/b/midi-file": errNoDevice, "midi://a/b/../midi-file": errNoDevice, "http://a/b/midi-gone": errNoDevice,
		"midi://a/b/midi-null": errUnfit, // no read of it could be ended
	} {
		_, err := f.Open(address)
		var refused interface{ Refused() bool }
		if !errors.Is(err, want) || !errors.As(err, &refused) || !refused.Refused() || strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if os.Geteuid() != 0 { // who may do everything is not refused
		path := pipe(t, dir, "midi-closed")
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Open("midi://a/b/midi-closed"); !errors.Is(err, errForbidden) {
			t.Error(err)
		}
	}
}

// watched is a folder that is watched; each change says so.
func watched(t *testing.T, f *Folder) <-chan struct{} {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	changed, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- f.Watch(ctx, func() {
			select {
			case changed <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return changed
}

// lists waits until the folder says that something changed and lists so many devices.
func lists(t *testing.T, f *Folder, want int, changed <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-changed:
			if len(f.List()) == want {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("nobody noticed that there are %d devices", want)
		}
	}
}

func TestPlugging(t *testing.T) {
	f := NewFolder(filepath.Join(t.TempDir(), "snd"))
	changed := watched(t, f)
	lists(t, f, 0, changed)
	steps := func() {
		if err := os.Mkdir(f.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := pipe(t, f.dir, "midiC0D0")
		lists(t, f, 1, changed)
		c, err := f.Open(f.List()[0].URL())
		if err != nil {
			t.Fatal(err)
		}
		play(t, path, 0xc0, 1)
		if got := said(t, c); !strings.HasPrefix(got, "midi.program_change") {
			t.Error(got)
		}
		other := pipe(t, f.dir, "midiC1D0")
		lists(t, f, 2, changed)
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
		lists(t, f, 1, changed)
		if err := os.RemoveAll(f.dir); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("plugged out it says %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		lists(t, f, 0, changed)
		if _, err := os.Stat(f.dir); !errors.Is(err, fs.ErrNotExist) || len(f.open) != 0 {
			t.Errorf("%v, %d are open", err, len(f.open))
		}
	}
	steps()
	steps() // the folder comes and goes with the first card and the last one
}

func TestWhatConcernsTheDevices(t *testing.T) {
	f := NewFolder("/dev/snd")
	for _, x := range []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{"/dev/snd", fsnotify.Create, true}, {"/dev/snd", fsnotify.Remove, true}, {"/dev/snd/midiC0D0", fsnotify.Create, true},
		{"/dev/snd/midiC0D0", fsnotify.Remove, true}, {"/dev/snd/midiC0D0", fsnotify.Rename, true}, {"/dev/snd/midiC0D0", fsnotify.Chmod | fsnotify.Write, true},
		{"/dev/snd/midiC0D0", fsnotify.Write, false}, {"/dev/snd/pcmC0D0p", fsnotify.Create, false}, {"/dev/midi1", fsnotify.Create, false}, {"/dev/sda", fsnotify.Create, false},
	} {
		if got := f.concerns(fsnotify.Event{Name: x.name, Op: x.op}); got != x.want {
			t.Errorf("%v of %s: %v", x.op, x.name, got)
		}
	}
}

// A device that comes back between two looks is another one.
func TestAnotherDeviceOfTheSameName(t *testing.T) {
	dir := t.TempDir()
	f := NewFolder(dir)
	old := pipe(t, dir, "midi-keys")
	c, err := f.Open("midi://a/b/midi-keys")
	if err != nil {
		t.Fatal(err)
	}
	pipe(t, dir, "new")
	if err := os.Rename(filepath.Join(dir, "new"), old); err != nil {
		t.Fatal(err)
	}
	watched(t, f) // which looks at the beginning
	if _, err := c.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
