package tool

import (
	"context"
	"errors"
	"fmt"
	"path"

	"vela/turn"
)

// Rule says whether a tool may run.
type Rule string

// What a rule may say. Any other word counts as [Deny].
const (
	Allow Rule = "allow"
	Ask   Rule = "ask"
	Deny  Rule = "deny" // the model is not told of the tool either
)

// Rules are the configuration of which tools may run. The zero value lets the built-in tools that only read run, and
// asks about every other.
type Rules struct {
	// Default is for the tools that no name and no pattern of Tools fits; empty: as in the zero value.
	Default Rule

	// Tools are rules by name, or by a pattern as [path.Match] has it: github_* is all tools of the MCP server github.
	// A name counts before a pattern and a longer pattern before a shorter one.
	Tools map[string]Rule
}

// Validate returns an error that names the first rule it finds that is none, or a pattern that is none.
func (r Rules) Validate() error {
	if r.Default != "" && !r.Default.known() {
		return fmt.Errorf("tool: %q is no rule: it takes allow, ask or deny", r.Default)
	}
	for name, rule := range r.Tools {
		if !rule.known() {
			return fmt.Errorf("tool: %q is no rule for %q: it takes allow, ask or deny", rule, name)
		}
		if _, err := path.Match(name, ""); err != nil || name == "" {
			return fmt.Errorf("tool: %q is no name of tools", name)
		}
	}
	return nil
}

func (r Rule) known() bool { return r == Allow || r == Ask || r == Deny }

// For is the rule for the tool with the given name.
func (r Rules) For(name string) Rule {
	rule, ok := r.Tools[name]
	if !ok {
		rule, ok = r.pattern(name)
	}
	switch {
	case !ok && r.Default != "":
		rule = r.Default
	case !ok && readers[name]:
		rule = Allow
	case !ok:
		rule = Ask
	}
	if !rule.known() {
		return Deny
	}
	return rule
}

// readers are the built-in tools that run without being asked for.
var readers = map[string]bool{readFile: true, glob: true, grep: true}

// pattern finds the rule of the longest pattern; of two that are as long, the stricter one.
func (r Rules) pattern(name string) (found Rule, ok bool) {
	longest := ""
	for pattern, rule := range r.Tools {
		if fits, err := path.Match(pattern, name); err != nil || !fits {
			continue
		}
		if !ok || len(pattern) > len(longest) || len(pattern) == len(longest) && strictness(rule) > strictness(found) {
			longest, found, ok = pattern, rule, true
		}
	}
	return found, ok
}

func strictness(r Rule) int {
	switch r {
	case Allow:
		return 0
	case Ask:
		return 1
	default:
		return 2
	}
}

// Approve lets through what the rules allow, asks about what they say to ask about, and hides what they deny. A call
// that cannot run, since its tool is not there or its input is no JSON object, is refused before anybody is asked.
//
// ask is called from the goroutine of Call: from several at once when tools run at once. nil stands for a no, since
// there is nobody to ask. Its error, such as the context's when the turn ends first, is that of the call.
func Approve(c Caller, rules Rules, ask func(context.Context, turn.Question) (turn.Answer, error)) Caller {
	return &approved{c, rules, ask}
}

type approved struct {
	caller Caller
	rules  Rules
	ask    func(context.Context, turn.Question) (turn.Answer, error)
}

func (a *approved) Definitions() []Definition {
	var shown []Definition
	for _, d := range a.caller.Definitions() {
		if a.rules.For(d.Name) != Deny {
			shown = append(shown, d)
		}
	}
	return shown
}

func (a *approved) Call(ctx context.Context, c Call) (Result, error) {
	d, ok := find(a.caller.Definitions(), c.Name)
	if !ok {
		return Result{}, unknown(c.Name)
	}
	input, err := object(c)
	if err != nil {
		return Result{}, err
	}
	switch a.rules.For(c.Name) {
	case Allow:
	case Ask:
		if err := a.question(ctx, d, Call{c.ID, c.Name, input}); err != nil {
			return Result{}, err
		}
	default:
		return Result{}, fmt.Errorf("The tool %s is switched off.", c.Name)
	}
	return a.caller.Call(ctx, c)
}

func (a *approved) question(ctx context.Context, d Definition, c Call) error {
	var answer turn.Answer
	if a.ask != nil {
		var err error
		answer, err = a.ask(ctx, turn.Question{CallID: c.ID, Name: c.Name, Summary: summary(c), Risky: !d.ReadOnly})
		if err != nil {
			return err
		}
	}
	if !answer.Allow {
		return errors.New("The user did not allow " + c.Name + ".")
	}
	return nil
}
