package main

import (
	"fmt"
	"time"

	"vela/e2e/bench/proc"
)

const idleConnections = 4000

// memory measures resident memory for each of 4,000 idle connections.
func (b *bench) memory() error {
	var velas, bares, ratios []float64
	for range max(1, b.rounds/2) {
		vela, bare, err := b.startBoth()
		if err != nil {
			return err
		}
		v, errV := idle(vela, true)
		w, errB := idle(bare, false)
		vela.Stop()
		bare.Stop()
		if errV != nil || errB != nil {
			return fmt.Errorf("%v %v", errV, errB)
		}
		velas, bares, ratios = append(velas, v), append(bares, w), append(ratios, v/w)
	}
	fmt.Printf("resident memory of each of %d idle connections\n", idleConnections)
	fmt.Printf("  bare   %8.1f KB\n  vela   %8.1f KB\n", median(bares)/1e3, median(velas)/1e3)
	fmt.Printf("  ratio  %8.2f times the bare server's (aim: at most 1.3)\n\n", median(ratios))
	return nil
}

func idle(p *proc.Process, gateway bool) (float64, error) {
	time.Sleep(time.Second) // start-up has settled, the recogniser is loaded
	before := p.Resident()
	for range idleConnections {
		c, err := dial(p.Addr, "")
		if err != nil {
			return 0, err
		}
		defer c.Close()
		if gateway {
			if err := c.until(`"idle"`); err != nil {
				return 0, err
			}
		}
	}
	time.Sleep(2 * time.Second)
	return float64(p.Resident()-before) / idleConnections, nil
}
