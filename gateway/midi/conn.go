package midi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"vela/protocol/signal"
)

// refusal is an error that trying again does not mend, in words for whoever wanted to hear the device.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) Refused() bool   { return true }

const (
	errNoDevice  refusal = "There is no such MIDI device. Plug it in and scan again."
	errForbidden refusal = "The MIDI device may not be read. Let the user who runs the gateway read it: on most systems that is the group audio."
	errTaken     refusal = "Another program has the MIDI device. End that one first."
	errUnfit     refusal = "The MIDI device cannot be read."
)

// Conn is a connection to a device. Next, Parse and Close are called from one goroutine.
type Conn struct {
	folder *Folder
	port   string
	name   string
	file   *os.File
	info   fs.FileInfo
	gone   chan struct{} // closed when it has been plugged out

	reader Reader
	buf    [512]byte
	rest   []byte // of buf, not read yet
}

// Open opens the device of an address. The error is fit for whoever asked, and has a method Refused.
func (f *Folder) Open(address string) (*Conn, error) {
	port := portOf(address)
	if port == "" {
		return nil, errNoDevice
	}
	path := filepath.Join(f.dir, port)
	info, err := os.Stat(path)
	if err != nil || !isDevice(info) {
		return nil, errNoDevice
	}
	mode := os.O_RDONLY
	if info.Mode()&fs.ModeNamedPipe != 0 {
		mode = os.O_RDWR // so that it does not end with whoever writes to it
	}
	file, err := os.OpenFile(path, mode|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, errForbidden
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EAGAIN):
		return nil, errTaken
	case err != nil:
		return nil, errNoDevice
	}
	if info, err = file.Stat(); err == nil {
		err = file.SetReadDeadline(time.Time{}) // or nothing could end a read
	}
	if err != nil || !isDevice(info) {
		_ = file.Close()
		return nil, errUnfit
	}
	name, _ := f.describe(port)
	c := &Conn{folder: f, port: port, name: Device{Name: name}.Label(), file: file, info: info, gone: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[c] = true
	return c, nil
}

// Next waits for the next message of a channel, status byte included. It returns [io.EOF] when the device has been plugged
// out, and the context's cause when that is done.
func (c *Conn) Next(ctx context.Context) ([]byte, error) {
	stop := context.AfterFunc(ctx, c.wake)
	defer stop()
	for {
		for len(c.rest) > 0 {
			b := c.rest[0]
			c.rest = c.rest[1:]
			if m := c.reader.Feed(b); m != nil {
				return m, nil
			}
		}
		n, err := c.file.Read(c.buf[:])
		c.rest = c.buf[:n]
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case n > 0:
		case err == nil, errors.Is(err, io.EOF), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.EIO):
			return nil, io.EOF
		default:
			select {
			case <-c.gone:
				return nil, io.EOF
			default:
				return nil, err
			}
		}
	}
}

// wake has a read return.
func (c *Conn) wake() { _ = c.file.SetReadDeadline(time.Unix(1, 0)) } // it could be set when it was opened

// unplug ends the connection, as far as it has not ended. The folder calls it once, holding its mutex.
func (c *Conn) unplug() {
	delete(c.folder.open, c)
	close(c.gone)
	c.wake()
}

// Close lets go of the device.
func (c *Conn) Close() error {
	c.folder.mu.Lock()
	delete(c.folder.open, c)
	c.folder.mu.Unlock()
	return c.file.Close()
}

// Parse makes a signal of a message: none of one that has no meaning here.
func (c *Conn) Parse(message []byte) []signal.Raw {
	p := payloadOf(message)
	if p == nil {
		return nil
	}
	r, err := signal.Envelope{ID: uuid.NewString(), Timestamp: time.Now().UnixMilli(), Source: c.name, Payload: p}.Raw()
	if err != nil || signal.Check(r) != nil {
		return nil // it is made of numbers alone, under a name that [firstLine] has bounded
	}
	return []signal.Raw{r}
}
