package room

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"google.golang.org/protobuf/proto"
	"nhooyr.io/websocket"
)

// A worker is registered with LiveKit on a socket at /agent, with the messages of livekit/protocol (livekit_agent.proto):
// it offers itself, is asked whether it is free for a job, a room, and gets that room's token.

const (
	workerVersion = "1"
	loadEvery     = 10 * time.Second // a status goes out, which also shows that the socket lives
	registerTime  = 10 * time.Second
	maxJob        = 1 << 20 // bytes of a message
)

// worker is one registration.
type worker struct {
	rooms *Rooms
	ws    *websocket.Conn
	out   chan *livekit.WorkerMessage // bounded: see say
	tasks sync.WaitGroup
}

// work is registered with LiveKit until ctx is done. While LiveKit is away it tries again, and says so once.
func (r *Rooms) work(ctx context.Context) {
	away := false
	for try := 1; ctx.Err() == nil; try++ {
		began := time.Now()
		err := r.register(ctx, func() {
			if away {
				r.log.Info("LiveKit is there again")
			}
			away, try = false, 0
		})
		if ctx.Err() != nil {
			return
		}
		if !away && time.Since(began) < time.Minute {
			r.log.Warn("LiveKit sends nobody until it is there", "error", err)
			away = true
		}
		wait := time.NewTimer(min(firstPause<<min(try, 5), lastPause))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// register is one registration's life; there is called once it is taken.
func (r *Rooms) register(ctx context.Context, there func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ws, err := dialAgents(ctx, &r.cfg)
	if err != nil {
		return err
	}
	defer ws.CloseNow()
	w := &worker{rooms: r, ws: ws, out: make(chan *livekit.WorkerMessage, 64)}
	w.say(registration(r.cfg.Agent))
	w.tasks.Go(func() {
		w.write(ctx)
		cancel()
	})
	err = w.read(ctx, there)
	cancel()
	w.tasks.Wait()
	return err
}

// dialAgents opens the socket of a worker. Its error says what to do.
func dialAgents(ctx context.Context, cfg *Config) (*websocket.Conn, error) {
	token, err := auth.NewAccessToken(cfg.Key, cfg.Secret).SetValidFor(agentTTL).SetVideoGrant(&auth.VideoGrant{Agent: true}).ToJWT()
	if err != nil {
		return nil, fmt.Errorf("room: token: %w", err)
	}
	ctx, late := context.WithTimeout(ctx, registerTime)
	defer late()
	ws, resp, err := websocket.Dial(ctx, strings.TrimSuffix(cfg.URL, "/")+"/agent?protocol=1", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	switch {
	case err == nil:
		ws.SetReadLimit(maxJob)
		return ws, nil
	case resp != nil && resp.StatusCode == http.StatusUnauthorized:
		return nil, errKey
	case resp != nil && resp.StatusCode == http.StatusNotFound:
		return nil, errOld
	}
	return nil, errUnreachable
}

// registration offers a worker of that name.
func registration(agent string) *livekit.WorkerMessage {
	return &livekit.WorkerMessage{Message: &livekit.WorkerMessage_Register{Register: &livekit.RegisterWorkerRequest{
		Type: livekit.JobType_JT_ROOM, AgentName: agent, Version: workerVersion, PingInterval: uint32(loadEvery.Seconds()),
		AllowedPermissions: &livekit.ParticipantPermission{
			CanPublish: true, CanSubscribe: true, CanPublishData: true, CanUpdateMetadata: true, Agent: true,
		},
	}}}
}

// say puts a message behind those that wait. One for which there is no room is dropped: LiveKit takes nothing.
func (w *worker) say(m *livekit.WorkerMessage) {
	select {
	case w.out <- m:
	default:
	}
}

// write writes what is said, and how full we are, until it cannot.
func (w *worker) write(ctx context.Context) {
	again := time.NewTicker(loadEvery)
	defer again.Stop()
	for {
		var m *livekit.WorkerMessage
		select {
		case m = <-w.out:
		case <-again.C:
			m = w.status()
		case <-ctx.Done():
			return
		}
		b, err := proto.Marshal(m)
		if err != nil || w.ws.Write(ctx, websocket.MessageBinary, b) != nil {
			return
		}
	}
}

// status is how full we are.
func (w *worker) status() *livekit.WorkerMessage {
	load, rooms := w.rooms.load()
	status := livekit.WorkerStatus_WS_AVAILABLE
	if load >= 1 {
		status = livekit.WorkerStatus_WS_FULL
	}
	return &livekit.WorkerMessage{Message: &livekit.WorkerMessage_UpdateWorker{UpdateWorker: &livekit.UpdateWorkerStatus{
		Status: &status, Load: load, JobCount: uint32(rooms),
	}}}
}

// read does what LiveKit asks.
func (w *worker) read(ctx context.Context, there func()) error {
	var sweep sync.Once
	for {
		kind, b, err := w.ws.Read(ctx)
		if err != nil {
			return errUnreachable
		}
		var m livekit.ServerMessage
		if kind != websocket.MessageBinary || proto.Unmarshal(b, &m) != nil {
			continue // a message of a later version
		}
		switch m := m.Message.(type) {
		case *livekit.ServerMessage_Register:
			there()
			w.say(w.status())
			w.rooms.log.Info("registered with LiveKit", "server", m.Register.GetServerInfo().GetVersion())
			sweep.Do(func() { w.tasks.Go(func() { w.rooms.sweep(ctx) }) })
		case *livekit.ServerMessage_Availability:
			w.say(w.available(m.Availability.GetJob()))
		case *livekit.ServerMessage_Assignment:
			w.assigned(m.Assignment)
		case *livekit.ServerMessage_Termination:
			// The room ends, or the dispatch was taken back: LiveKit disconnects us, which is what we go by.
		}
	}
}

// available says whether we go into a room: not where one of us is, and not when there is no place.
func (w *worker) available(job *livekit.Job) *livekit.WorkerMessage {
	load, _ := w.rooms.load()
	return &livekit.WorkerMessage{Message: &livekit.WorkerMessage_Availability{Availability: &livekit.AvailabilityResponse{
		JobId: job.GetId(), Available: load < 1, ParticipantIdentity: "agent-" + random(), ParticipantName: "Vela",
	}}}
}

// assigned goes into a room, and tells LiveKit when we have left.
func (w *worker) assigned(a *livekit.JobAssignment) {
	job := a.GetJob()
	tell := func(status livekit.JobStatus, why string) {
		w.say(&livekit.WorkerMessage{Message: &livekit.WorkerMessage_UpdateJob{UpdateJob: &livekit.UpdateJobStatus{
			JobId: job.GetId(), Status: status, Error: why,
		}}})
	}
	tell(livekit.JobStatus_JS_RUNNING, "")
	err := w.rooms.enter(job.GetRoom().GetName(), ticket{w.rooms.cfg.URL, a.GetToken()}, func(error) {
		tell(livekit.JobStatus_JS_SUCCESS, "")
	})
	if err != nil {
		w.rooms.log.Warn("a job could not be taken", "room", job.GetRoom().GetName(), "error", err)
		tell(livekit.JobStatus_JS_FAILED, "the agent could not join")
	}
}
