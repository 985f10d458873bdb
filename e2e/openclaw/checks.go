package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// drive is everything that runs while the checks do.
type drive struct {
	program string
	dir     string
	model   *model
	claw    *claw
	vela    *vela
	session *session

	observed *observed // nil before it is
	rows     []row
	bad      int
}

// row is one line of the results.
type row struct {
	what, how string
	ok        bool
}

// hold notes whether something held, and what was seen.
func (d *drive) hold(what string, ok bool, format string, args ...any) {
	r := row{what, fmt.Sprintf(format, args...), ok}
	mark := "ok  "
	if !ok {
		mark, d.bad = "FAIL", d.bad+1
	}
	fmt.Printf("%s %s: %s\n", mark, r.what, r.how)
	d.rows = append(d.rows, r)
}

// checks are run in this order, on one session unless they say otherwise.
func (d *drive) checks(ctx context.Context) error {
	for _, check := range []func(context.Context) error{d.turn, d.tool, d.thoughts, d.failure, d.cancel, d.interrupt, d.two, d.observe, d.crash, d.overheardAgain, d.wrongToken, d.end} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

const hello = "Hello from the model by rote."

func (d *drive) turn(ctx context.Context) error {
	for _, which := range []string{"the first turn of a fresh OpenClaw", "a turn"} {
		r, err := d.session.ask(ctx, "hello", nil)
		if err != nil {
			return err
		}
		d.hold(which, r.text == hello && r.completed && r.code == "", "%q, first text after %s, whole after %s", r.text, ms(r.first), ms(r.whole))
	}
	return nil
}

func (d *drive) tool(ctx context.Context) error {
	const want = "First I look into the notes. It may take a moment.\n\nThe notes say hello from the workspace."
	r, err := d.session.ask(ctx, "use the tool", nil)
	d.hold("a tool call, with text before and after it", r.text == want && r.completed && strings.Join(r.tools, ",") == "read ok", "%q, tools %q, each text once", r.text, r.tools)
	return err
}

func (d *drive) thoughts(ctx context.Context) error {
	r, err := d.session.ask(ctx, "think", nil)
	d.hold("a model that thinks", r.text == "Forty-two." && r.thoughts == "Let me think for a moment." && r.completed, "%q; thoughts %q", r.text, r.thoughts)
	return err
}

func (d *drive) failure(ctx context.Context) error {
	r, err := d.session.ask(ctx, "boom", nil)
	d.hold("a model that fails", r.code == "agent_failed" && !r.completed && r.text == "", "%s: %s", r.code, r.words)
	return err
}

// cancel: what is stopped here is stopped at the model, too.
func (d *drive) cancel(ctx context.Context) error {
	r, err := d.slow(ctx)
	if err != nil {
		return err
	}
	after := d.quiet(ctx)
	d.hold("an answer cancelled in the middle", !r.completed && r.code == "" && after >= 0, "idle at once; the model's request was gone %s later", ms(after))
	return nil
}

// interrupt: OpenClaw would give a question that comes too early to the run before.
func (d *drive) interrupt(ctx context.Context) error {
	for range 3 {
		if _, err := d.slow(ctx); err != nil {
			return err
		}
		r, err := d.session.ask(ctx, "hello", nil)
		if err != nil {
			return err
		}
		d.hold("the next question right behind a cancel", r.text == hello && r.completed, "%q, whole after %s", r.text, ms(r.whole))
	}
	return nil
}

// slow begins a long answer and cancels it at its first text.
func (d *drive) slow(ctx context.Context) (reply, error) {
	cancelled := false
	return d.session.ask(ctx, "slow", func(e event) error {
		if e.Type != "response.text.delta" || cancelled {
			return nil
		}
		cancelled = true
		return d.session.send(ctx, `{"type":"response.cancel","payload":{}}`)
	})
}

// quiet waits until the model writes no answer; negative if it never did.
func (d *drive) quiet(ctx context.Context) time.Duration {
	start := time.Now()
	for d.model.running.Load() > 0 {
		if ctx.Err() != nil || time.Since(start) > 10*time.Second {
			return -1
		}
		wait(ctx, 5*time.Millisecond)
	}
	return time.Since(start)
}

// two sessions are two conversations of OpenClaw's.
func (d *drive) two(ctx context.Context) error {
	other, err := d.vela.talk(ctx)
	if err != nil {
		return err
	}
	defer other.close()
	type result struct {
		reply
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := other.ask(ctx, "use the tool", nil)
		done <- result{r, err}
	}()
	r, err := d.session.ask(ctx, "hello", nil)
	o := <-done
	d.hold("two sessions at once", r.text == hello && r.completed && o.completed && len(o.tools) == 1, "%q and %q", r.text, o.text)
	if err == nil {
		err = o.err
	}
	return err
}

// crash kills OpenClaw in the middle of an answer and starts it again. Vela goes on.
func (d *drive) crash(ctx context.Context) error {
	killed := time.Time{}
	r, err := d.session.ask(ctx, "slow", func(e event) error {
		if e.Type == "response.text.delta" && killed.IsZero() {
			d.claw.kill()
			killed = time.Now()
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.hold("OpenClaw killed in the middle of an answer", r.code == "agent_failed" && !r.completed, "%s after %s: %s", r.code, ms(time.Since(killed)), r.words)
	r, err = d.session.ask(ctx, "hello", nil)
	if err != nil {
		return err
	}
	d.hold("a turn while OpenClaw is gone", r.code == "agent_unavailable" && r.whole < 5*time.Second, "%s after %s: %s", r.code, ms(r.whole), r.words)
	start := time.Now()
	if err := d.claw.start(ctx); err != nil {
		return err
	}
	ready := time.Since(start)
	r, err = d.session.ask(ctx, "hello", nil)
	if err != nil {
		return err
	}
	d.hold("a turn once OpenClaw is back", r.text == hello && r.completed, "OpenClaw took %s to start; %q%s after %s, in the same session, Vela not restarted", ms(ready), r.text, r.words, ms(r.whole))
	return nil
}

func (d *drive) wrongToken(ctx context.Context) error {
	v, err := startVela(d.program, d.dir, "wrong-token-0123456789", d.claw.port)
	if err != nil {
		return err
	}
	defer v.kill()
	s, err := v.talk(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.ask(ctx, "hello", nil)
	d.hold("a wrong token", r.code == "agent_unavailable", "%s: %s", r.code, r.words)
	return err
}

// end: what still runs is stopped when Vela is.
func (d *drive) end(ctx context.Context) error {
	var took time.Duration
	var stopped error
	_, err := d.session.ask(ctx, "slow", func(e event) error {
		if e.Type == "response.text.delta" && took == 0 {
			took, stopped = d.vela.stop()
		}
		return nil
	})
	after := d.quiet(ctx)
	d.hold("Vela told to stop in the middle of an answer", err != nil && stopped == nil && after >= 0, "it took %s; the model's request was gone %s later", ms(took), ms(after))
	d.session.close()
	said := d.session.seen.String() + d.vela.log.String()
	d.hold("what Vela said and logged", !strings.Contains(said, token) && !strings.Contains(d.session.seen.String(), fmt.Sprint(d.claw.port)), "the token is nowhere in it, and no address in what clients were told")
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
