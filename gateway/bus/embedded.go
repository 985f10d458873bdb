package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// reserve is what a disk has to have free before we write: the server needs some itself, to make a file smaller or to
// note what it deletes, and stops writing for good when it gets none. On a small disk it is a tenth of it.
const reserve = 32 << 20

// startRoom is what a server needs to start.
const startRoom = 1 << 20

const (
	startWait = 30 * time.Second // reading what is kept, on a slow disk
	tryEvery  = 200 * time.Millisecond
)

// embedded is the server inside this process.
type embedded struct {
	dir     string // empty for memory
	log     *slog.Logger
	lock    *os.File
	reserve uint64

	server  atomic.Pointer[server.Server]
	broken  atomic.Bool // it has stopped writing, and is started anew when there is room
	suspect func()      // asks the keeper to look whether that is so
	stop    context.CancelFunc
	kept    sync.WaitGroup
	hints   chan struct{}
}

func openEmbedded(dir string, log *slog.Logger) (_ *embedded, err error) {
	e := &embedded{dir: dir, log: log, hints: make(chan struct{}, 1)}
	e.suspect = func() {
		select {
		case e.hints <- struct{}{}:
		default:
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("bus: make the folder: %w", err)
		}
		if e.lock, err = lockDir(dir); err != nil {
			return nil, err
		}
		_, size, err := space(dir)
		if err != nil {
			return nil, err
		}
		e.reserve = min(reserve, size/10)
	}
	return e, e.start()
}

// start runs a server on the folder. It is up when start returns.
func (e *embedded) start() error {
	dir := e.dir
	if dir == "" {
		// Streams in memory write nothing, but the server wants a folder to be there while it starts.
		var err error
		if dir, err = os.MkdirTemp("", "vela-bus-"); err != nil {
			return fmt.Errorf("bus: make a folder: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	s, err := server.NewServer(&server.Options{
		ServerName:         "vela",
		DontListen:         true,
		NoSigs:             true,
		NoLog:              true,
		JetStream:          true,
		StoreDir:           dir,
		JetStreamMaxMemory: 1 << 50, // our own bounds are on the streams; without one here the server guesses its own
		JetStreamMaxStore:  1 << 60,
		MaxPayload:         maxMessage,
	})
	if err != nil {
		return fmt.Errorf("bus: start the embedded NATS server: %w", err)
	}
	s.SetLoggerV2(&serverLog{e.log, e.suspect}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(startWait) || !s.JetStreamEnabled() {
		s.Shutdown()
		s.WaitForShutdown()
		return fmt.Errorf("bus: the embedded NATS server cannot use %s: is it a folder that we may write to, with room left?", e.dir)
	}
	e.server.Store(s)
	return nil
}

// InProcessConn implements [nats.InProcessConnProvider]: a connection to whichever server is up.
func (e *embedded) InProcessConn() (net.Conn, error) { return e.server.Load().InProcessConn() }

// room is nil when there is enough of it to write.
func (e *embedded) room() error {
	if e.dir == "" {
		return nil
	}
	free, _, err := space(e.dir)
	if err != nil {
		return err
	}
	if free < e.reserve || e.broken.Load() {
		return fmt.Errorf("%w: %d MiB are free, and %d stay in reserve", ErrFull, free>>20, e.reserve>>20)
	}
	return nil
}

// keep starts the keeper, which close waits for. A server that could not write once never tries again, and does not
// even answer, so the keeper looks after each error it logs. While it is broken what waits for it fails, through fail,
// and reading goes on; when there is room a new one takes its place.
func (e *embedded) keep(fail func()) {
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.kept.Go(func() {
		retry := time.NewTicker(tryEvery)
		defer retry.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-e.hints:
				if e.broken.Load() || e.dir == "" || e.healthy() {
					continue
				}
				e.broken.Store(true)
				e.log.Error("the store of conversations cannot write")
				fail()
			case <-retry.C:
				if e.broken.Load() {
					e.renew(fail)
				}
			}
		}
	})
}

func (e *embedded) healthy() bool {
	return e.server.Load().Healthz(&server.HealthzOptions{}).StatusCode == 200
}

// renew puts a new server in the place of a broken one, once there is room.
func (e *embedded) renew(fail func()) {
	if free, _, err := space(e.dir); err != nil || free < max(e.reserve, startRoom) {
		return
	}
	old := e.server.Load()
	old.Shutdown()
	old.WaitForShutdown()
	if err := e.start(); err != nil {
		e.log.Error("the store of conversations does not start again", "error", err)
		return
	}
	fail() // what was asked of the old one
	e.broken.Store(false)
	e.log.Info("the store of conversations writes again")
}

func (e *embedded) close() error {
	if e.stop != nil {
		e.stop()
		e.kept.Wait()
	}
	if s := e.server.Load(); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
	if e.lock != nil {
		return e.lock.Close()
	}
	return nil
}
