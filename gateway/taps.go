package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"

	"vela/gateway/discovery"
	"vela/gateway/midi"
	"vela/gateway/source"
	"vela/gateway/tap"
	"vela/protocol/signal"
)

// taps is how those on this machine are listened to that cannot be connected to over a network: Claude Code, by hooks, and
// MIDI devices. It implements [server.Tap].
type taps struct {
	hooks   *tap.Hooks
	devices *midi.Folder
	where   discovery.Config // all but the devices
	log     *slog.Logger

	// Set before anything runs.
	sources *source.Sources
	address net.Addr // where hooks are taken; nil: nowhere
}

// listen says where hooks are taken: where the gateway listens, or, where that speaks https, at an address of this machine
// alone, since Claude Code need not trust the certificate. The listener for that is nil where it is not needed, or cannot be.
func (t *taps) listen(at net.Addr, tls bool) net.Listener {
	if !tls {
		t.address = at
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.log.Warn("Claude Code cannot be connected: there is no address of this machine for its hooks", "error", err)
		return nil
	}
	t.address = l.Addr()
	return l
}

func makeTaps(cfg Config) *taps {
	t := &taps{
		devices: midi.NewFolder(cmp.Or(cfg.MIDI, midi.Usual)),
		where:   discovery.Config{Dir: cmp.Or(cfg.Project, ".")},
		log:     cfg.Log.With("component", "taps"),
	}
	program, err := os.Executable()
	if err != nil {
		program = "vela"
	}
	t.hooks = tap.New(tap.Config{Folder: func() (string, bool) { return discovery.ClaudeFolder(t.where.Dir) }, URL: t.hookURL, Program: program})
	return t
}

// services is what may run on this machine, and whether it does.
func (t *taps) services(ctx context.Context) []discovery.Service {
	at := t.where
	at.Devices = t.ports
	return at.Look(ctx)
}

func (t *taps) ports() []discovery.Service {
	var all []discovery.Service
	for _, d := range t.devices.List() {
		all = append(all, discovery.Service{ID: d.ID(), Label: d.Label(), Protocol: string(source.MIDI), URL: d.URL(), Available: true})
	}
	return all
}

// look is the same for the sources.
func (t *taps) look(ctx context.Context) []source.Found {
	var all []source.Found
	for _, s := range t.services(ctx) {
		all = append(all, source.Found{
			ID: s.ID, Label: s.Label, Protocol: source.Protocol(s.Protocol), URL: s.URL,
			Available: s.Available, NeedsKey: s.NeedsAPIKey, Models: s.Models,
		})
	}
	return all
}

// device opens a MIDI device for the sources.
func (t *taps) device(_ context.Context, address string) (source.Feed, error) {
	c, err := t.devices.Open(address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// watch has the sources look again whenever a MIDI device is plugged in or out, until ctx is done.
func (t *taps) watch(ctx context.Context) {
	err := t.devices.Watch(ctx, func() {
		if _, err := t.sources.Scan(ctx); err != nil && ctx.Err() == nil {
			t.log.Warn("a MIDI device came or went, and the sources were not looked for again", "error", err)
		}
	})
	if err != nil {
		t.log.Info("MIDI devices that are plugged in later are not noticed at once", "error", err)
	}
}

// hookURL is where Claude Code posts what its hooks tell.
func (t *taps) hookURL() (string, error) {
	at, ok := t.address.(*net.TCPAddr)
	if !ok {
		return "", errNoHooks
	}
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(at.Port)) + "/api/tap/hook", nil
}

// errNoHooks is shown to whoever connects Claude Code.
const errNoHooks hookFault = "This gateway has no address at which it could take hooks. Its log says why."

type hookFault string

func (h hookFault) Error() string { return string(h) }
func (hookFault) Refused() bool   { return true }

// Admits implements [server.Tap].
func (t *taps) Admits(h http.Header) bool { return t.hooks.Admits(h) }

// hookSpace is what a signal has beside what a hook tells, in bytes.
const hookSpace = 4 << 10

// Hear implements [server.Tap].
func (t *taps) Hear(told []byte) {
	r, err := source.Stamp{NewID: uuid.NewString, Now: time.Now}.ParseHook(tap.Fit(told, signal.MaxSize-hookSpace))
	if err == nil {
		err = t.sources.Heard(source.ClaudeCodeID, r)
	}
	if err != nil {
		t.log.Debug("what a hook told is left out", "error", err)
	}
}
