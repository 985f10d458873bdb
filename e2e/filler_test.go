package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// soundDelta is one response.audio.delta.
type soundDelta struct {
	Payload struct {
		ResponseID string `json:"responseId"`
		Chunk      []byte `json:"chunk"`
		StartMs    int    `json:"startMs"`
		Text       string `json:"text"`
		Filler     bool   `json:"filler"`
	} `json:"payload"`
}

// TestALongToolIsNotSilent has a tool take 5 s: what is said meanwhile is recognised, has its place in the sound of the
// answer, and is no part of what was heard of it.
func TestALongToolIsNotSilent(t *testing.T) {
	t.Setenv("E2E_MODEL_KEY", modelKey)
	server := models(t)
	g, dir := serveAgents(t, fmt.Sprintf("agents:\n  model: {kind: openai, url: %q, model: m, key_env: E2E_MODEL_KEY, "+
		"tools: {root: project, bash: true, rules: {bash: allow}}, filler: [One moment please.], filler_after: 1s}\n", server.url+"/v1"))
	d := g.talk(t, `{"turns":"agent","audio":{"output":{"encoding":"pcm16","rate":16000,"framing":"json"}}}`)
	d.say("Look for a while.")
	var phrase, answer []byte
	text, end := "", 0
	order := ""
	events := d.until(func(e event) bool {
		if e.Type == "response.audio.delta" {
			var s soundDelta
			if err := json.Unmarshal([]byte(e.raw), &s); err != nil {
				t.Fatal(err)
			}
			p := s.Payload
			if p.StartMs != end/32 {
				t.Errorf("sound for %d ms where %d ms are due", p.StartMs, end/32)
			}
			end += len(p.Chunk)
			text += p.Text
			kind := "a"
			if p.Filler {
				kind, phrase = "p", append(phrase, p.Chunk...)
			} else {
				answer = append(answer, p.Chunk...)
			}
			if !strings.HasSuffix(order, kind) {
				order += kind
			}
			d.send(fmt.Sprintf(`{"type":"playback.ack","payload":{"responseId":%q,"playedMs":%d}}`, p.ResponseID, (end+31)/32))
		}
		return e.Type == "session.state" && e.Payload.Value == "idle"
	})
	heard := ""
	for _, e := range events {
		if e.Type == "response.completed" {
			heard = e.Payload.HeardText
		}
	}
	if want := "I will look.It is here."; strings.ReplaceAll(text, "\n", "") != want || strings.ReplaceAll(heard, "\n", "") != want {
		t.Errorf("%q was spoken and %q is heard, want %q", text, heard, want)
	}
	if order != "apa" || len(answer) == 0 {
		t.Errorf("sound came in the order %q, want the answer, a phrase, the answer", order)
	}
	name := filepath.Join(dir, "phrase.wav")
	if err := os.WriteFile(name, wav(phrase), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := run(t, nil, "say", "--fast", "--url", g.addr, name); !strings.Contains(out, "moment") {
		t.Errorf("the phrase is heard as: exit %d\n%s%s", code, out, errs)
	}
}

// wav is 16 kHz mono PCM16 as a file.
func wav(pcm []byte) []byte {
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, field := range []any{uint32(36 + len(pcm)), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(16000), uint32(32000), uint16(2), uint16(16), []byte("data"), uint32(len(pcm))} {
		_ = binary.Write(&b, binary.LittleEndian, field) // to memory
	}
	b.Write(pcm)
	return b.Bytes()
}
