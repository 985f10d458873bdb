package room

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/livekit/protocol/livekit"
)

// LiveKit is told how full the gateway is, of each job that it has begun and of its end, and gets a no where there is no place.
func TestAWorkerThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, Config{MaxRooms: 1})
		w := &worker{rooms: h.Rooms, out: make(chan *livekit.WorkerMessage, 64)}
		says := func(full bool) {
			t.Helper()
			free := w.available(&livekit.Job{Id: "j"}).GetAvailability()
			status := w.status().GetUpdateWorker()
			if free.GetAvailable() == full || free.GetJobId() != "j" || full != (status.GetStatus() == livekit.WorkerStatus_WS_FULL) || full != (status.GetLoad() == 1) || full != (status.GetJobCount() == 1) {
				t.Errorf("full: %t, and it says %v, %v", full, free, status)
			}
		}
		job := func(id, room string) {
			w.assigned(&livekit.JobAssignment{Job: &livekit.Job{Id: id, Room: &livekit.Room{Name: room}}, Token: "t"})
			synctest.Wait()
		}
		told := func(id string, want livekit.JobStatus) {
			t.Helper()
			select {
			case m := <-w.out:
				if u := m.GetUpdateJob(); u.GetJobId() != id || u.GetStatus() != want {
					t.Errorf("told: %v, want %s %s", m, id, want)
				}
			default:
				t.Errorf("nothing is told, want %s %s", id, want)
			}
		}
		says(false)
		job("first", "kitchen")
		told("first", livekit.JobStatus_JS_RUNNING)
		says(true)
		if err := h.Join("hall"); !errors.Is(err, ErrFull) || len(h.places) != 1 {
			t.Errorf("one room more than may be: %v; %d are remembered", err, len(h.places))
		}
		job("second", "hall")
		told("second", livekit.JobStatus_JS_RUNNING)
		told("second", livekit.JobStatus_JS_FAILED)
		h.last().room.over(errEnded)
		synctest.Wait()
		told("first", livekit.JobStatus_JS_SUCCESS)
		says(false)
	})
}
