package speechserver

import (
	"context"
	"net/http"
)

// Probe asks the server for the list of its models, which every OpenAI-compatible one has, and says why it cannot be used: it is not there, or does not
// accept the key. An error is the cause of ctx, or an [*Error]. Whether it has the model is seen when it is used.
func (o *OpenAITranscriber) Probe(ctx context.Context) error { return o.t.client.probe(ctx, "/models") }

// Probe is as that of [OpenAITranscriber], and asks for the server's page.
func (w *WhisperTranscriber) Probe(ctx context.Context) error { return w.t.client.probe(ctx, "/") }

// Probe is as that of [OpenAITranscriber].
func (s *OpenAISynthesizer) Probe(ctx context.Context) error { return s.client.probe(ctx, "/models") }

// Probe is as that of [OpenAITranscriber], and asks for the server's page.
func (s *PiperSynthesizer) Probe(ctx context.Context) error { return s.client.probe(ctx, "/") }

// probe takes any answer for one, but that the key is not accepted: what a server has at an address that nobody uses is its own.
func (c *client) probe(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return failed("The speech server cannot be asked.", err)
	}
	req.Header.Set("User-Agent", "vela")
	if c.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	response, err := c.http.Do(req)
	if err != nil {
		return unavailable("The speech server cannot be reached.", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		return c.refusal(response.StatusCode, nil)
	}
	return nil
}
