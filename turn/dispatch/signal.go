package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Status is where a dispatch stands. It goes from waiting to processing to done, and to waiting again with the next
// step; or from waiting to error.
type Status string

// The four states of a signal.
const (
	Waiting    Status = "waiting"    // for an artifact
	Processing Status = "processing" // the artifact was taken
	Done       Status = "done"
	Failed     Status = "error" // too late, not valid, cancelled, or given up by the responder
)

// Signal is the content of signal.json, as the Signal Protocol has it.
type Signal struct {
	Status       Status `json:"status"`
	DispatchID   int64  `json:"dispatch_id"` // grows by one with each dispatch of a suite, from 1
	CaseID       string `json:"case_id"`     // such as C1
	Step         Step   `json:"step"`
	PromptPath   string `json:"prompt_path"`   // absolute
	ArtifactPath string `json:"artifact_path"` // absolute
	Timestamp    string `json:"timestamp"`     // ISO 8601; when the step was dispatched
	Error        string `json:"error"`         // only with status error
}

// Sizes of files that others write, in bytes.
const (
	maxSignal   = 64 << 10
	maxArtifact = 4 << 20
	maxPrompt   = 32 << 20 // the artifacts of six steps are in the last prompt
)

// What an artifact may be other than the answer.
var (
	errNotYet  = errors.New("no artifact yet")
	errInvalid = errors.New("invalid artifact")
)

func decodeSignal(b []byte) (Signal, error) {
	var s Signal
	if err := json.Unmarshal(b, &s); err != nil {
		return Signal{}, fmt.Errorf("dispatch: decode signal.json: %w", err)
	}
	switch s.Status {
	case Waiting, Processing, Done, Failed:
		return s, nil
	}
	return Signal{}, fmt.Errorf("dispatch: decode signal.json: no status %q", string(s.Status))
}

// namesDispatch says whether a signal has a dispatch_id.
func namesDispatch(b []byte) bool {
	var s struct {
		DispatchID *json.RawMessage `json:"dispatch_id"`
	}
	return json.Unmarshal(b, &s) == nil && s.DispatchID != nil
}

func (s Signal) encode() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// age is how long ago the step was dispatched; 0 where the timestamp does not say.
func (s Signal) age() time.Duration {
	at, err := time.Parse(time.RFC3339, s.Timestamp)
	if err != nil {
		return 0
	}
	return time.Since(at)
}

// wrapper is the content of an artifact file.
type wrapper struct {
	DispatchID int64           `json:"dispatch_id"`
	Data       json.RawMessage `json:"data"`
}

// unwrap returns the data of an artifact, a JSON object. The error is errInvalid for what is no JSON or has no data, and
// errNotYet for an artifact without this dispatch_id: it is of another step, and silently passed over.
func unwrap(b []byte, id int64) (json.RawMessage, error) {
	if !utf8.Valid(b) || !json.Valid(b) {
		return nil, fmt.Errorf("%w: it is not valid JSON", errInvalid)
	}
	var w struct {
		DispatchID json.RawMessage `json:"dispatch_id"` // raw, since any wrong value is a wrong number, not a wrong file
		Data       json.RawMessage `json:"data"`
	}
	if json.Unmarshal(b, &w) != nil { // an array, or the like
		return nil, errNotYet
	}
	if n, err := strconv.ParseInt(string(w.DispatchID), 10, 64); err != nil || n != id {
		return nil, errNotYet
	}
	if !isObject(w.Data) {
		return nil, fmt.Errorf("%w: its data is not a JSON object", errInvalid)
	}
	return w.Data, nil
}

func isObject(b []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(b, &o) == nil && o != nil
}
