package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"vela/e2e/bench/proc"
)

const busySessions = 500

// cancel measures the time from response.cancel to session.state(idle) while 500 sessions are busy: each speaks for a
// fifth of a second in 20 ms chunks, commits, and cancels somewhere in its paced answer.
func (b *bench) cancel() error {
	vela, err := proc.Start(b.vela, "serve", "--addr", "127.0.0.1:0", "--log-level", "error", "--max-sessions", "10000", "--pace", "120ms")
	if err != nil {
		return err
	}
	defer vela.Stop()
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var wg sync.WaitGroup
	end := time.Now().Add(2 * b.each)
	for range busySessions {
		c, err := dial(vela.Addr, "?turns=deterministic")
		if err != nil {
			return err
		}
		defer c.Close()
		wg.Go(func() {
			mine, err := cancels(c, end)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	if failed != nil || len(took) == 0 {
		return fmt.Errorf("no figures: %v", failed)
	}
	fmt.Printf("response.cancel→idle with %d busy sessions, %d cancels\n", busySessions, len(took))
	fmt.Printf("  p50    %8.2f ms\n  p99    %8.2f ms (aim: 5 ms)\n\n", ms(percentile(took, 0.5)), ms(percentile(took, 0.99)))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func cancels(c *conn, end time.Time) (took []time.Duration, err error) {
	if err := c.until(`"idle"`); err != nil {
		return nil, err
	}
	for time.Now().Before(end) {
		for range 10 {
			if _, err := c.Write(appendFrame); err != nil {
				return nil, err
			}
			if err := c.until("transcript.partial"); err != nil {
				return nil, err
			}
			time.Sleep(20 * time.Millisecond)
		}
		if _, err := c.Write(commitFrame); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(rand.IntN(340)) * time.Millisecond)
		from := time.Now()
		if _, err := c.Write(cancelFrame); err != nil {
			return nil, err
		}
		if err := c.until(`"idle"`); err != nil {
			return nil, err
		}
		took = append(took, time.Since(from))
	}
	return took, nil
}
