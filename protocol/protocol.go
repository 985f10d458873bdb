// Package protocol is the wire contract between the gateway and whoever talks to it: every event, error code and
// close code, [Decode] for what arrives and [Encode] for what leaves. README.md in this folder is the contract in
// words; asyncapi.yaml and the npm package @vela/protocol are made from the table in events.go by this package's tests.
//
// Every WebSocket text message is one envelope, {"type": string, "payload": object}. Start at [Message]: each event is
// a struct whose JSON is the payload and whose Type is the envelope's type.
//
// Below it, package signal is the vocabulary for what agents do, and package ganglia that of what is shown of it: its
// objects are the events status and artifact.
//
// The package is pure: it does no IO, starts no goroutine and reads no clock. All of it may be called from anywhere.
package protocol

// Message is one event without its envelope. The struct's JSON encoding is the envelope's payload.
type Message interface {
	// Type is the event's name on the wire, such as "session.start".
	Type() string
}

// Side says who sends an event.
type Side string

// The two ends of a connection.
const (
	Client Side = "client"
	Server Side = "server"
)

// Event is one row of the contract: what an event is called, who sends it, since which version, and what it is for.
type Event struct {
	Type  string
	From  Side
	Since int    // the first protocol version that has it
	Doc   string // one sentence for the documents made from this table
	Doc2  string // the same for version 2, where it says more; else ""

	zero   Message                               // for the documents: its fields are the payload
	shape  shape                                 // of its struct
	decode func(payload []byte) (Message, error) // where the shape does not say all; payload is a valid JSON object
}

// Zero returns the event with an empty payload; the documents are made from its fields.
func (e Event) Zero() Message { return e.zero }

// Events returns the whole table, in the order in which the contract lists it.
func Events() []Event { return append([]Event(nil), events...) }
