package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vela/e2e/bench/proc"
)

const tripConnections = 64

// trips measures append→partial round trips a second, one outstanding on each of 64 connections.
func (b *bench) trips() error {
	vela, bare, err := b.startBoth()
	if err != nil {
		return err
	}
	defer vela.Stop()
	defer bare.Stop()
	var ratio, cost, velaRate, bareRate, velaCost, bareCost []float64
	for range b.rounds {
		br, bc, err := b.tripsOf(bare, "")
		if err != nil {
			return err
		}
		vr, vc, err := b.tripsOf(vela, "?turns=deterministic")
		if err != nil {
			return err
		}
		velaRate, bareRate = append(velaRate, vr), append(bareRate, br)
		velaCost, bareCost = append(velaCost, vc), append(bareCost, bc)
		ratio, cost = append(ratio, vr/br), append(cost, vc/bc)
	}
	fmt.Printf("append→partial round trips, %d connections, 640 B of audio each\n", tripConnections)
	fmt.Printf("  %-6s %8.0f a second, %5.1f µs of server CPU each\n", "bare", median(bareRate), median(bareCost))
	fmt.Printf("  %-6s %8.0f a second, %5.1f µs of server CPU each\n", "vela", median(velaRate), median(velaCost))
	fmt.Printf("  ratio  %8.2f of the bare server's rate (aim: at least 0.8), %.2f times its CPU\n\n", median(ratio), median(cost))
	return nil
}

// tripsOf returns round trips a second and µs of server CPU for each.
func (b *bench) tripsOf(p *proc.Process, query string) (rate, cost float64, err error) {
	var count atomic.Int64
	var failed atomic.Value
	var wg, ready sync.WaitGroup
	var stop atomic.Bool
	begin := make(chan struct{})
	for range tripConnections {
		c, err := dial(p.Addr, query)
		if err != nil {
			return 0, 0, err
		}
		defer c.Close()
		ready.Add(1)
		wg.Go(func() {
			// The first append is answered with session.state as well, after session.ready and another.
			warm(c, query != "")
			ready.Done()
			<-begin
			n := int64(0)
			for ; !stop.Load(); n++ {
				if err := c.trip(); err != nil {
					failed.Store(err)
					break
				}
			}
			count.Add(n)
		})
	}
	ready.Wait()
	cpu, from := p.CPU(), time.Now()
	close(begin)
	time.Sleep(b.each)
	stop.Store(true)
	wg.Wait()
	took := time.Since(from)
	if err, ok := failed.Load().(error); ok {
		return 0, 0, err
	}
	used := p.CPU() - cpu
	return float64(count.Load()) / took.Seconds(), float64(used.Microseconds()) / float64(count.Load()), nil
}

func warm(c *conn, gateway bool) {
	_, _ = c.Write(appendFrame)
	if gateway {
		_ = c.until("transcript.partial")
		return
	}
	_, _ = c.next()
}

func (c *conn) trip() error {
	if _, err := c.Write(appendFrame); err != nil {
		return err
	}
	_, err := c.next()
	return err
}
