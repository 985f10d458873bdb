package bus

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

var (
	// ErrFull comes from a write for which there is no room: the disk is full, or the bound of the store is reached.
	// What is kept stays readable, and writing goes on when there is room again.
	ErrFull = errors.New("bus: no room left to keep conversations: free some space")
	// ErrUnavailable comes while there is no connection to the server, or no answer. Whether what was on its way has
	// been stored is open; appending it again settles that.
	ErrUnavailable = errors.New("bus: the store does not answer")
	// ErrConflict says that somebody else has written to the conversation: this writer has lost it, and should stop.
	ErrConflict = errors.New("bus: the conversation has another writer")
	// ErrOrder comes from an event that is not the next one; [Session.Next] says which is.
	ErrOrder = errors.New("bus: not the next event")
	// ErrTooLarge comes from an event or a state that no message of the server can carry.
	ErrTooLarge = errors.New("bus: too large for one message")
	// ErrBehind comes from AppendAsync when 4,096 events or 8 MiB of the conversation already wait for the store.
	ErrBehind = errors.New("bus: the store is too far behind")
	// ErrClosed comes from a bus that is closed, and from a session that is deleted.
	ErrClosed = errors.New("bus: closed")
	// ErrInUse comes from Open when another process has the folder, or another gateway the server.
	ErrInUse = errors.New("in use by another gateway: give each its own")
	// ErrID comes from a session whose id is not one token of letters, digits, '-' and '_', at most 128 of them.
	ErrID = errors.New("bus: not an id of a session")
)

// Error codes of JetStream's API that we tell apart.
const (
	codeNoResourcesAccount = 10002
	codeNoResourcesServer  = 10023
	codeNoMemory           = 10028
	codeNoMessage          = 10037
	codeNoStorage          = 10047
	codeWrongSequence      = 10071
	codeStoreFailed        = 10077 // a bound of the stream is reached, or it is storeClosed
	codeWrongSequenceToo   = 10164
)

// storeClosed is how a server that stops describes why it does not store: its ErrStoreClosed.
const storeClosed = "store is closed"

// apiError is how JetStream refuses.
type apiError struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) err() error {
	if e == nil {
		return nil
	}
	if e.Code == codeStoreFailed && e.Description == storeClosed {
		return fmt.Errorf("%w (%s)", ErrUnavailable, e.Description)
	}
	switch e.Code {
	case codeNoResourcesAccount, codeNoResourcesServer, codeNoMemory, codeNoStorage, codeStoreFailed:
		return fmt.Errorf("%w (%s)", ErrFull, e.Description)
	case codeWrongSequence, codeWrongSequenceToo:
		return ErrConflict
	}
	return errors.New("bus: the server refuses: " + e.Description + " (" + strconv.Itoa(e.Code) + ")")
}

// sendError says what a failed publish means.
func sendError(err error) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooLarge
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}
