package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A speech server that runs on this machine is found by asking the ports where such servers usually are, and offered. It is not
// used by itself: what people say goes nowhere that the operator has not named, and on a machine that others use, anybody may
// have a server on a port.

// offer is a server that was found.
type offer struct {
	kind  string
	label string // what it is
	line  string // what to put below ears in vela.yaml
}

// usualPorts are those of whisper.cpp's server (and the next one, as Vela itself is on 8080) and of speaches, once called
// faster-whisper-server.
var usualPorts = []string{"8080", "8081", "8000"}

// findTime is how long servers have to answer, by default.
const findTime = 300 * time.Millisecond

// mostAnswer bounds what a server answers, in bytes.
const mostAnswer = 256 << 10

// finder looks for servers. Its methods may be called from several goroutines.
type finder struct {
	recent[[]offer]
	ports  []string
	within time.Duration // how long they have to answer
	client *http.Client
}

func newFinder() *finder {
	f := &finder{recent: newRecent[[]offer](), ports: usualPorts, within: findTime}
	f.client = &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return (&net.Dialer{Timeout: f.within}).DialContext(ctx, network, address)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// lately is what was found in the last seconds. It takes as long as servers have to answer.
func (f *finder) lately(ctx context.Context) []offer { return f.recent.lately(ctx, f.look) }

// look asks every port at once, on loopback alone.
func (f *finder) look(ctx context.Context) (found []offer) {
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	answers := make([]*offer, len(f.ports))
	var asked sync.WaitGroup
	for i, port := range f.ports {
		asked.Go(func() { answers[i] = f.ask(ctx, "http://127.0.0.1:"+port) })
	}
	asked.Wait()
	for _, o := range answers {
		if o != nil {
			found = append(found, *o)
		}
	}
	return found
}

// ask says what is at an address: whisper.cpp's server has a page of that name, an OpenAI-compatible one lists its models.
func (f *finder) ask(ctx context.Context, address string) *offer {
	if strings.Contains(string(f.get(ctx, address+"/")), "Whisper.cpp Server") {
		return &offer{"whisper", "a whisper.cpp server", fmt.Sprintf("{kind: whisper, url: %q}", address)}
	}
	var list struct {
		Data []struct {
			ID   string `json:"id"`
			Task string `json:"task"`
		} `json:"data"`
	}
	if json.Unmarshal(f.get(ctx, address+"/v1/models"), &list) != nil {
		return nil
	}
	for _, m := range list.Data {
		if m.ID != "" && (m.Task == "automatic-speech-recognition" || m.Task == "" && strings.Contains(strings.ToLower(m.ID), "whisper")) {
			return &offer{"openai", "a transcription server", fmt.Sprintf("{kind: openai, url: %q, model: %q}", address+"/v1", m.ID)}
		}
	}
	return nil
}

// get is what is answered with success; nothing otherwise.
func (f *finder) get(ctx context.Context, url string) []byte {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return body
}

// withOffers are the ears of the report, and those that were found: what is at work says that there is better.
func withOffers(ears []Engine, found []offer) []Engine {
	if len(found) == 0 {
		return ears
	}
	list := make([]Engine, 0, len(ears)+len(found))
	for _, e := range ears {
		e.Better = "There is " + found[0].label + " on this machine: vela engines says how to use it."
		list = append(list, e)
	}
	for _, o := range found {
		list = append(list, Engine{
			Name: o.kind, Label: strings.ToUpper(o.label[:1]) + o.label[1:], Offered: true,
			Why:   "It runs on this machine, and is not used. Name it below ears in vela.yaml.",
			Cause: notThere("It runs on this machine. To use it, put this below ears in vela.yaml:  - " + o.line),
		})
	}
	return list
}
