package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vela/e2e/bench/proc"
)

const (
	loggedSignals   = 10_000 // as many as the log keeps
	signalReaders   = 50
	standingReaders = 5 // of them
	signalRate      = 1000
	signalSettle    = 3 * time.Second // until memory is as it stays
	signalFlow      = 15 * time.Second
	standFor        = 5 * time.Second // until a reader that stands still comes anew: after 10 s it would be sent away
)

// signals measures the event stream: what the log of 10,000 signals has resident, and whether 50 readers, of which 5
// stand still, get all of 1,000 signals a second in time, while the gateway's memory stays as it is.
func (b *bench) signals() error {
	vela, err := proc.Start(b.vela, "serve", "--addr", "127.0.0.1:0", "--log-level", "error")
	if err != nil {
		return err
	}
	defer vela.Stop()
	time.Sleep(time.Second) // start-up has settled
	empty := vela.Resident()
	flow := signalSource{addr: vela.Addr}
	for range loggedSignals {
		if err := flow.post(); err != nil {
			return err
		}
	}
	text := len(flow.next())
	fmt.Printf("the log of signals, %d of %d bytes\n", loggedSignals, text)
	fmt.Printf("  text   %8.1f MB\n", float64(loggedSignals*text)/1e6)
	fmt.Printf("  vela   %8.1f MB resident beside the %.1f MB of an empty log\n\n", float64(vela.Resident()-empty)/1e6, float64(empty)/1e6)
	return b.readSignals(vela, &flow)
}

// readSignals lets signals flow to readers of which some stand still.
func (b *bench) readSignals(vela *proc.Process, flow *signalSource) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var standing, reading sync.WaitGroup
	for range standingReaders {
		standing.Go(func() { standStill(ctx, vela.Addr) })
	}
	defer standing.Wait()
	defer cancel()
	readers := make([]signalReader, signalReaders-standingReaders)
	for i := range readers {
		r := &readers[i]
		if err := r.open(ctx, vela.Addr); err != nil {
			return err
		}
		reading.Go(r.read)
	}
	first := flow.sent + 1
	if err := flow.run(signalSettle); err != nil {
		return err
	}
	memory, used, sent := []int{vela.Resident()}, vela.CPU(), flow.sent
	for range int(signalFlow / time.Second) {
		if err := flow.run(time.Second); err != nil {
			return err
		}
		memory = append(memory, vela.Resident())
	}
	used, sent = vela.CPU()-used, flow.sent-sent
	time.Sleep(time.Second) // the last ones arrive
	cancel()
	reading.Wait()
	var took []time.Duration
	lost, disturbed := 0, 0
	for _, r := range readers {
		took = append(took, r.took...)
		for i, n := range r.got {
			if n != first+i {
				disturbed++
			}
		}
		lost += flow.sent - first + 1 - len(r.got)
	}
	if len(took) == 0 {
		return errors.New("no reader has got anything")
	}
	fmt.Printf("%d event streams of which %d stand still, %d signals a second for %s\n", signalReaders, standingReaders, signalRate, signalFlow)
	fmt.Printf("  lost   %8d of %d, %d out of order (aim: 0)\n", lost, len(readers)*(flow.sent-first+1), disturbed)
	fmt.Printf("  from the post to the reader: p50 %.2f ms, p99 %.2f ms\n", ms(percentile(took, 0.5)), ms(percentile(took, 0.99)))
	fmt.Printf("  CPU    %8.1f µs for each signal and its %d readers\n", float64(used.Microseconds())/float64(sent), signalReaders)
	fmt.Printf("  memory %8.1f MB at the start, at most %.1f MB\n", float64(memory[0])/1e6, float64(slices.Max(memory))/1e6)
	fmt.Printf("  ratio  %8.2f times the start's (aim: at most 1.1)\n\n", float64(slices.Max(memory))/float64(memory[0]))
	return nil
}

// signalSource posts signals that are numbered, and say when they were sent.
type signalSource struct {
	addr string
	sent int
}

func (s *signalSource) next() string {
	return fmt.Sprintf(`{"type":"text_delta","source":"bench","correlationId":"run-%d","payload":{"agentId":"main","content":"%d %d %s"}}`,
		s.sent/100, s.sent+1, time.Now().UnixNano(), strings.Repeat("words ", 20))
}

func (s *signalSource) post() error {
	resp, err := http.Post("http://"+s.addr+"/api/signal", "application/json", strings.NewReader(s.next()))
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("a signal was answered with %s", resp.Status)
	}
	s.sent++
	return nil
}

// run posts at the rate for some time.
func (s *signalSource) run(long time.Duration) error {
	began := time.Now()
	for n := range int(long * signalRate / time.Second) {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / signalRate)))
		if err := s.post(); err != nil {
			return err
		}
	}
	return nil
}

// signalReader is one that takes what comes.
type signalReader struct {
	in   *bufio.Scanner
	got  []int // the numbers
	took []time.Duration
}

func (r *signalReader) open(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/__signals__/stream", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	r.in = bufio.NewScanner(resp.Body)
	if !r.in.Scan() || r.in.Text() != ": connected" {
		return fmt.Errorf("an event stream begins with %q", r.in.Text())
	}
	return nil
}

// read takes signals until the stream ends.
func (r *signalReader) read() {
	for r.in.Scan() {
		_, content, found := bytes.Cut(r.in.Bytes(), []byte(`"content":"`))
		if !found {
			continue
		}
		fields := bytes.SplitN(content, []byte(" "), 3)
		number, _ := strconv.Atoi(string(fields[0]))
		sent, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		r.got, r.took = append(r.got, number), append(r.took, time.Duration(time.Now().UnixNano()-sent))
	}
}

// standStill asks for all signals that are kept, again and again, and takes none.
func standStill(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(c, "GET /__signals__/stream HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: \r\n\r\n", addr)
		select {
		case <-time.After(standFor):
		case <-ctx.Done():
		}
		_ = c.Close()
	}
}
