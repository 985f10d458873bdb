package midi

import (
	"context"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"vela/gateway/watch"
)

// Usual is where Linux has the devices.
const Usual = "/dev/snd"

// Device is a device that is plugged in.
type Device struct {
	Port  string // the name of its file, such as midiC1D0
	Name  string // empty: unknown
	Maker string // empty: unknown
}

// ID is always the same for the same port.
func (d Device) ID() string { return "local:midi:" + d.Port }

// Label is what people see.
func (d Device) Label() string {
	if d.Name == "" {
		return "MIDI Device"
	}
	return d.Name
}

// URL is midi://maker/name/port.
func (d Device) URL() string {
	part := func(s, other string) string {
		if s == "" {
			s = other
		}
		return url.PathEscape(s)
	}
	return "midi://" + part(d.Maker, "unknown") + "/" + part(d.Name, "unnamed") + "/" + part(d.Port, "")
}

// portOf is the port in such an address; empty if it is none.
func portOf(address string) string {
	parts := strings.Split(strings.TrimPrefix(address, "midi://"), "/")
	if !strings.HasPrefix(address, "midi://") || len(parts) < 3 {
		return ""
	}
	port, err := url.PathUnescape(parts[len(parts)-1])
	if err != nil || port != filepath.Base(port) || !isPort(port) {
		return ""
	}
	return port
}

func isPort(name string) bool { return strings.HasPrefix(name, "midi") }

// Folder is a folder in which devices appear. Its methods may be called from any goroutine. Make it with [NewFolder].
type Folder struct {
	dir    string
	system string // where /proc and /sys are; empty but in tests

	mu   sync.Mutex
	open map[*Conn]bool
}

// NewFolder returns the folder at dir, which need not be there.
func NewFolder(dir string) *Folder { return &Folder{dir: dir, open: map[*Conn]bool{}} }

// maxDevices bounds a list of devices.
const maxDevices = 64

// List is the devices that are there now: files whose names begin with midi and that are devices, or named pipes.
func (f *Folder) List() []Device {
	entries, err := os.ReadDir(f.dir) // by name
	if err != nil {
		return nil // without a sound card there is no such folder
	}
	var all []Device
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(f.dir, e.Name()))
		if err != nil || !isPort(e.Name()) || !isDevice(info) || len(all) == maxDevices {
			continue
		}
		d := Device{Port: e.Name()}
		d.Name, d.Maker = f.describe(e.Name())
		all = append(all, d)
	}
	return all
}

func isDevice(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeCharDevice|fs.ModeNamedPipe) != 0
}

// alsa is the name of a raw device of ALSA: which card's, and which one of these.
var alsa = regexp.MustCompile(`^midi(C(\d+))D(\d+)$`)

// describe asks the kernel what a device is called, and who made it. Neither may be known.
func (f *Folder) describe(port string) (name, maker string) {
	m := alsa.FindStringSubmatch(port)
	if m == nil {
		return port, ""
	}
	card := "card" + m[2]
	// The first line of this file is the name (sound/core/rawmidi.c of Linux).
	name = firstLine(f.system + "/proc/asound/" + card + "/midi" + m[3])
	// The card hangs on one interface of a USB device; what the device says of itself stands beside that.
	maker = firstLine(f.system + "/sys/class/sound/" + card + "/device/../manufacturer")
	return name, maker
}

// firstLine is that of a small file, or nothing. The path is taken as it is: ".." leads up from where a link leads.
func firstLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	text := make([]byte, 256)
	n, _ := file.Read(text) // what was read is all there is
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	return strings.TrimSpace(strings.ToValidUTF8(line, ""))
}

// settle is how long the folder has to be left alone before it is looked at: a device comes as a file that nobody may read yet.
const settle = 100 * time.Millisecond

// Watch calls changed whenever devices may have come or gone, and ends the connections to those that are not there any
// more, until ctx is done. It returns an error when the folder cannot be watched.
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	return watch.Folder{
		// The folder itself comes with the first sound card, and goes with the last.
		Path: filepath.Dir(f.dir), Within: f.dir, Settle: settle, Concerns: f.concerns,
		Changed: func() (again bool) {
			if f.unplug() {
				return true // whoever hears the device learns it first
			}
			changed()
			return false
		},
	}.Run(ctx)
}

// concerns says whether devices may have come or gone. To play one is no such thing.
func (f *Folder) concerns(e fsnotify.Event) bool {
	device := filepath.Dir(e.Name) == f.dir && isPort(filepath.Base(e.Name))
	return (device || e.Name == f.dir) && e.Op&^fsnotify.Write != 0
}

// unplug ends the connections to devices that are not there any more, or not the same, and says whether there were any.
func (f *Folder) unplug() (any bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.open {
		if info, err := os.Stat(filepath.Join(f.dir, c.port)); err != nil || !os.SameFile(info, c.info) {
			c.unplug()
			any = true
		}
	}
	return any
}
