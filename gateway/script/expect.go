package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// expectation parses what follows a <: the next message, the same byte for byte, or everything up to one.
func expectation(name, rest string) (action, error) {
	if text, ok := strings.CutPrefix(rest, "<"); ok {
		text, ok = strings.CutPrefix(text, " ")
		if !ok || text == "" {
			return nil, errors.New("<< expects nothing: write << and a blank before the text")
		}
		return expectBytes(name, text), nil
	}
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return nil, errors.New("< expects nothing: write the message after it as JSON")
	}
	if dots, ok := strings.CutPrefix(rest, "..."); ok {
		until, ok := strings.CutPrefix(strings.TrimSpace(dots), "until ")
		if !ok {
			return nil, errors.New("what ends the skipping? Write < ... until and a message as JSON")
		}
		want, err := parsePattern(until)
		return expectUntil(name, want), err
	}
	want, err := parsePattern(rest)
	return expect(name, want), err
}

// expect plays the step: the next message agrees.
func expect(name string, want *pattern) action {
	return func(ctx context.Context, p *player) error {
		var differs error
		_, ok := p.await(ctx, name, p.limit, func(a arrival) bool {
			differs = a.compare(want, p.bound)
			return differs == nil
		})
		if !ok {
			return p.nothing(want.text)
		}
		return differs
	}
}

// expectUntil plays the step. The limit is for all of it.
func expectUntil(name string, want *pattern) action {
	return func(ctx context.Context, p *player) error {
		end := time.Now().Add(p.limit)
		skipped := 0
		for {
			a, ok := p.next(ctx, name, time.Until(end))
			switch {
			case !ok:
				return fmt.Errorf("expected  … %s\ngot       %d other messages, and not this one within %v", short(want.text), skipped, p.limit)
			case a.err != nil:
				return fmt.Errorf("expected  … %s\ngot       %d other messages, then: %w", short(want.text), skipped, a.err)
			case a.compare(want, p.bound) == nil:
				return nil
			}
			skipped++
		}
	}
}

// expectBytes plays the step: the next message is this text.
func expectBytes(name, want string) action {
	return func(ctx context.Context, p *player) error {
		a, ok := p.await(ctx, name, p.limit, func(a arrival) bool { return string(a.raw.Data) == want })
		switch {
		case !ok:
			return p.nothing(want)
		case a.err != nil || a.raw.Binary:
			return fmt.Errorf("expected  %s\ngot       %s", short(want), a)
		case string(a.raw.Data) != want:
			return fmt.Errorf("expected  %s\ngot       %s\nat byte %d they part", short(want), a, firstDifference(want, string(a.raw.Data)))
		}
		return nil
	}
}

func firstDifference(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i + 1
}

func (p *player) nothing(want string) error {
	return fmt.Errorf("expected  %s\ngot       nothing within %v", short(want), p.limit)
}

// compare says how what arrived differs from what was expected.
func (a arrival) compare(want *pattern, bound map[string]any) error {
	if a.err != nil || a.raw.Binary {
		return fmt.Errorf("expected  %s\ngot       %s", short(want.text), a)
	}
	found := want.differences(a.raw.Data, bound, a.envelope)
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("expected  %s\ngot       %s\n%s", short(want.text), a, strings.Join(found, "\n"))
}

func within(d time.Duration) action {
	return func(_ context.Context, p *player) error {
		p.limit = d
		return nil
	}
}

func wait(d time.Duration) action {
	return func(ctx context.Context, _ *player) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func silent(name string, d time.Duration) action {
	return func(ctx context.Context, p *player) error {
		if a, ok := p.await(ctx, name, d, nil); ok {
			return fmt.Errorf("expected  nothing for %v\ngot       %s", d, a)
		}
		return nil
	}
}
