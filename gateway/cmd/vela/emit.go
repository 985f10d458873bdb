package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"vela/gateway/client"
	"vela/protocol/signal"
)

type emitCmd struct {
	Type        string `arg:"" help:"Type of the signal, such as thinking or deploy.done; - takes signals from standard input, one line of JSON each."`
	Payload     string `help:"Payload, a JSON object." default:"{}" placeholder:"JSON"`
	Source      string `help:"Who produced it." default:"cli"`
	Correlation string `help:"What ties it to others of the same episode." placeholder:"ID"`
	URL         string `help:"Gateway to send it to." default:"127.0.0.1:8080" env:"VELA_URL"`
}

// Validate is called by kong after parsing.
func (c *emitCmd) Validate() error {
	c.Payload = strings.TrimSpace(c.Payload)
	if c.Type == "" || !json.Valid([]byte(c.Payload)) || c.Payload[0] != '{' {
		return errors.New(`a signal has a type, and a payload that is a JSON object, such as --payload '{"agentId":"me","content":"hm"}'`)
	}
	return nil
}

// Run sends the signals, and prints the id of each.
func (c *emitCmd) Run(ctx context.Context, s streams) error {
	g, err := toGateway(c.URL)
	if err != nil {
		return err
	}
	if c.Type != "-" {
		body := signal.Raw{Type: c.Type, Source: c.Source, CorrelationID: c.Correlation, Payload: json.RawMessage(c.Payload)}
		return g.emit(ctx, s.out, body.Append(nil))
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 2*signal.MaxSize)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			if err := g.emit(ctx, s.out, line); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// plainGateway is a gateway that is asked by plain requests, with the credential of the environment.
type plainGateway struct{ address client.Address }

func toGateway(url string) (plainGateway, error) {
	a, err := client.ParseAddress(url)
	return plainGateway{a}, err
}

// do makes a request. Its error tells a person what to do.
func (g plainGateway) do(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.address.HTTP(path), body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if t := token(); t != "" {
		req.Header.Set("Authorization", "Bearer "+t)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("no gateway answers at %s: is it running there? Start one with vela serve (%w)", g.address.Host(), errors.Unwrap(err))
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		defer func() { _ = resp.Body.Close() }()
		var told struct{ Message string }
		_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<10)).Decode(&told)
		return nil, &client.DialError{Address: g.address.Host(), Status: resp.StatusCode, Detail: told.Message}
	}
	return resp, nil
}

// emit sends one signal, and prints its id.
func (g plainGateway) emit(ctx context.Context, out io.Writer, body []byte) error {
	answer, err := g.post(ctx, body)
	if err != nil {
		return err
	}
	if !answer.OK {
		return fmt.Errorf("the gateway does not take it: %s", strings.TrimPrefix(answer.Error, "signal: "))
	}
	_, err = fmt.Fprintln(out, answer.ID)
	return err
}

// send sends one signal. What the gateway finds wrong with it stands among its signals.
func (g plainGateway) send(ctx context.Context, body []byte) error {
	_, err := g.post(ctx, body)
	return err
}

// taken is what the gateway answers to a signal.
type taken struct {
	OK    bool   `json:"ok"`
	ID    string `json:"id"`
	Error string `json:"error"`
}

func (g plainGateway) post(ctx context.Context, body []byte) (taken, error) {
	resp, err := g.do(ctx, http.MethodPost, "/api/signal", bytes.NewReader(body), http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return taken{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer taken
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&answer); err != nil || answer.ID == "" {
		return taken{}, fmt.Errorf("%s takes no signals: is it a gateway of this version? (%s)", g.address.Host(), resp.Status)
	}
	return answer, nil
}
