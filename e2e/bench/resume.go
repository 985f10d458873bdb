package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"vela/e2e/bench/proc"
)

// resumed is how many events a session keeps.
const resumed = 4096

// version2 is the header line that asks for version 2.
const version2 = "Sec-WebSocket-Protocol: vela.v2\r\n"

// resume measures how long a client of version 2 that has lost its connection waits for 4,096 events that it missed:
// from the dial to the last of them.
func (b *bench) resume() error {
	vela, err := proc.Start(b.vela, "serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--pace", "0s")
	if err != nil {
		return err
	}
	defer vela.Stop()
	token, last, err := b.talk(vela.Addr)
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 20 {
		from := time.Now()
		if err := resumeAfter(vela.Addr, token, last-resumed, last); err != nil {
			return err
		}
		took = append(took, time.Since(from))
	}
	fmt.Printf("resume of %d events, from the dial to the last of them\n", resumed)
	fmt.Printf("  p50    %8.2f ms\n\n", ms(percentile(took, 0.5)))
	return nil
}

// talk has mocked turns until the session has more events than it keeps.
func (b *bench) talk(addr string) (token string, last uint64, err error) {
	c, err := dial(addr, "", version2)
	if err != nil {
		return "", 0, err
	}
	defer c.Close()
	if _, err := c.Write(frame(`{"type":"session.start","payload":{"turns":"deterministic"}}`)); err != nil {
		return "", 0, err
	}
	trigger := frame(`{"type":"mocked.turn.trigger","payload":{}}`)
	for {
		text, err := c.next()
		if err != nil {
			return "", 0, err
		}
		var e struct {
			Seq     uint64
			Payload struct{ ResumeToken, Value string }
		}
		if err := json.Unmarshal(text, &e); err != nil {
			return "", 0, err
		}
		token, last = cmp.Or(e.Payload.ResumeToken, token), max(last, e.Seq)
		switch idle := e.Payload.Value == "idle"; {
		case idle && last > resumed:
			return token, last, nil
		case idle:
			if _, err := c.Write(trigger); err != nil {
				return "", 0, err
			}
		}
	}
}

func resumeAfter(addr, token string, after, last uint64) error {
	c, err := dial(addr, "", version2)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(frame(fmt.Sprintf(`{"type":"session.resume","payload":{"token":%q,"after":%d}}`, token, after))); err != nil {
		return err
	}
	return c.until(fmt.Sprintf(`"seq":%d,`, last))
}
