//go:build cgo && opus

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"vela/e2e/bench/proc"
)

const (
	loadPause  = 5 * time.Second // of each person, for the answer
	loadAnswer = 4 * time.Second
	loadSettle = 6 * time.Second // a turn, until memory is as it stays
	loadFor    = 14 * time.Second

	// What LiveKit Agents publishes of one agent in one room.
	agentsCPU    = 0.13 // cores
	agentsMemory = 93e6 // bytes
)

// load measures what a room costs the gateway, with a person whose microphone is always open, and an agent that answers
// aloud: processor time, and memory beside that of a gateway without rooms.
func load(vela *proc.Process, s *services, mic *speech) error {
	if err := s.says(loadAnswer); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var talking sync.WaitGroup
	defer talking.Wait()
	defer cancel()
	time.Sleep(2 * time.Second) // start-up has settled
	empty := vela.Resident()
	fmt.Printf("a room with sound both ways and an open microphone (LiveKit Agents says: %.2f cores and %.0f MB)\n", agentsCPU, agentsMemory/1e6)
	var people []*person
	for _, rooms := range []int{1, 4, 12} {
		for len(people) < rooms {
			p, err := enter(ctx, vela.Addr, "room "+strconv.Itoa(len(people)), "ann", nil)
			if err != nil {
				return err
			}
			people = append(people, p)
			defer p.room.Disconnect()
			talking.Go(func() { _ = pace(ctx, mic.packets, mic.silence, loadPause, p.utter, func() {}) })
		}
		time.Sleep(loadSettle)
		used, from := vela.CPU(), time.Now()
		before := soundOf(people)
		time.Sleep(loadFor)
		cores := (vela.CPU() - used).Seconds() / time.Since(from).Seconds() / float64(rooms)
		memory := float64(vela.Resident()-empty) / float64(rooms)
		heard := float64(soundOf(people)-before) * 0.04 / loadFor.Seconds() / float64(rooms) // packets hold 40 ms
		if heard < 0.2 {
			return fmt.Errorf("of %d rooms little was to be heard: %.2f s a second", rooms, heard)
		}
		fmt.Printf("  vela   %2d rooms: %.3f cores and %5.1f MB each, which speaks %2.0f %% of the time; %.2f and %.2f times theirs (aim: at most 0.33 and 0.10)\n",
			rooms, cores, memory/1e6, 100*heard, cores/agentsCPU, memory/agentsMemory)
	}
	fmt.Println()
	return nil
}

func soundOf(people []*person) (packets int64) {
	for _, p := range people {
		packets += p.packets.Load()
	}
	return packets
}
