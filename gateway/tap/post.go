package tap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxHook bounds what a hook tells, in bytes, as the gateway does.
const maxHook = 8 << 20

// postTime bounds a hook that is a command.
const postTime = 3 * time.Second

// Post sends what Claude Code tells a hook that is a command, as its other hooks do by themselves: to the address and
// with the token that stand in the settings in file. Its errors are for a person, and name no token.
func Post(ctx context.Context, file string, told io.Reader) error {
	body, err := io.ReadAll(io.LimitReader(told, maxHook+1))
	switch {
	case err != nil:
		return fmt.Errorf("tap: read what the hook is told: %w", err)
	case len(body) > maxHook:
		return fmt.Errorf("tap: a hook of more than %d bytes", maxHook)
	}
	text, _, err := read(file)
	if err != nil {
		return fmt.Errorf("tap: read Claude Code's settings: %w", cause(err))
	}
	s, err := parseSettings(text)
	if err != nil {
		return err
	}
	for _, e := range s.ours() {
		if e.Type == "http" {
			return post(ctx, e, body)
		}
	}
	return errors.New("tap: these settings have no hook of a gateway's any more")
}

func post(ctx context.Context, to entry, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("tap: the hook's address is none")
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range to.Headers {
		req.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{}} // without a proxy: it is this machine
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return errors.New("tap: the gateway of this hook does not answer: is it running?")
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("tap: the gateway does not take the hook (%s)", resp.Status)
	}
	return nil
}

// Fit makes what a hook tells short enough for a signal of so many bytes: where the call's input and the tool's response
// are too long, the longer one first, they are left out, and the hook says so in their place. What is no object, or is
// too long without them, stays.
func Fit(body []byte, most int) []byte {
	if len(body) <= most {
		return body
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return body
	}
	names := []string{"tool_response", "tool_input"}
	if len(fields[names[0]]) < len(fields[names[1]]) {
		slices.Reverse(names)
	}
	for _, name := range names {
		if value, ok := fields[name]; ok && len(body) > most {
			fields[name] = fmt.Appendf(nil, `{"omitted":"%d bytes"}`, len(value))
			body, _ = json.Marshal(fields) // it was JSON
		}
	}
	return body
}
