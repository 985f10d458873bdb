package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// answers hands each reply of the server to whoever asked. Replies arrive on one subscription, and are handed on by its
// goroutine one at a time, in order.
type answers struct {
	nc    *nats.Conn
	inbox string // ends with a dot

	mu      sync.Mutex
	ended   bool
	last    uint64
	waiting map[uint64]func(*nats.Msg, error)
}

func (a *answers) listen(nc *nats.Conn) error {
	a.nc = nc
	a.inbox = nc.NewInbox() + "."
	sub, err := nc.Subscribe(a.inbox+"*", a.take)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1) // bounded by what is asked
	}
	if err != nil {
		return fmt.Errorf("bus: subscribe: %w", err)
	}
	return nil
}

// ask sends m and has its answer handed to then, once; what it returns takes the question back. An error means that
// nothing was sent, and then is never called. Another error comes to then when the connection breaks.
func (a *answers) ask(m *nats.Msg, then func(*nats.Msg, error)) (forget func(), err error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return nil, ErrClosed
	}
	a.last++
	number := a.last
	if a.waiting == nil {
		a.waiting = map[uint64]func(*nats.Msg, error){}
	}
	a.waiting[number] = then
	a.mu.Unlock()

	forget = func() { a.remove(number) }
	m.Reply = a.inbox + strconv.FormatUint(number, 36)
	if err := a.nc.PublishMsg(m); err != nil {
		if a.remove(number) == nil {
			return forget, nil // failAll was quicker, and has told
		}
		return nil, sendError(err)
	}
	return forget, nil
}

// wait asks and waits for the answer.
func (a *answers) wait(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	type answer struct {
		m   *nats.Msg
		err error
	}
	got := make(chan answer, 1)
	forget, err := a.ask(m, func(m *nats.Msg, err error) { got <- answer{m, err} })
	if err != nil {
		return nil, err
	}
	select {
	case r := <-got:
		return r.m, r.err
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}

func (a *answers) take(m *nats.Msg) {
	number, err := strconv.ParseUint(m.Subject[len(a.inbox):], 36, 64)
	if err != nil {
		return
	}
	if then := a.remove(number); then != nil {
		then(m, nil)
	}
}

func (a *answers) remove(number uint64) func(*nats.Msg, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	then := a.waiting[number]
	delete(a.waiting, number)
	return then
}

// failAll tells everybody who waits that no answer will come.
func (a *answers) failAll(err error) {
	a.mu.Lock()
	waiting := a.waiting
	a.waiting = nil
	a.mu.Unlock()
	for _, then := range waiting {
		then(nil, err)
	}
}

func (a *answers) close() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.failAll(ErrClosed)
}

func (a *answers) closed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// stored reads the answer to a message for a stream: its place there.
func stored(m *nats.Msg) (uint64, error) {
	var ack struct {
		Seq   uint64    `json:"seq"`
		Error *apiError `json:"error"`
	}
	if err := readAnswer(m, &ack); err != nil {
		return 0, err
	}
	return ack.Seq, ack.Error.err()
}

// readAnswer decodes an answer, and tells it from the note that nobody was there to give one.
func readAnswer(m *nats.Msg, v any) error {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return fmt.Errorf("%w: the NATS server has no such stream just now", ErrUnavailable)
	}
	if err := json.Unmarshal(m.Data, v); err != nil {
		return fmt.Errorf("bus: read answer: %w", err)
	}
	return nil
}
