package script

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parser reads lines one after the other.
type parser struct {
	name string
	line int

	about     []string
	aboutDone bool
	known     map[string]bool // connections so far
	implied   bool            // the connection that is there without a connect
	steps     []step
	errs      []error
}

// read takes one line.
func (p *parser) read(line string) {
	trimmed := strings.TrimLeft(line, " \t")
	comment := strings.HasPrefix(trimmed, "#")
	p.comment(comment, trimmed)
	if comment || strings.TrimSpace(line) == "" {
		return
	}
	do, err := p.step(trimmed)
	if err != nil {
		p.errs = append(p.errs, &SyntaxError{p.name, p.line, err.Error()})
		return
	}
	p.steps = append(p.steps, step{p.line, trimmed, do})
}

// comment keeps the first block of comments.
func (p *parser) comment(is bool, text string) {
	if is && !p.aboutDone {
		p.about = append(p.about, strings.TrimSpace(strings.TrimPrefix(text, "#")))
	}
	p.aboutDone = p.aboutDone || !is && len(p.about) > 0
}

// named is a step of one of several connections: "b> …", "b< …" or "b: silent 1s".
var named = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*)(>|<|: *)`)

// step parses a line without its indentation.
func (p *parser) step(line string) (action, error) {
	name := ""
	if m := named.FindStringSubmatch(line); m != nil {
		name = m[1]
		line = strings.TrimPrefix(line[len(name):], ":")
		line = strings.TrimLeft(line, " ")
	}
	switch line[:min(1, len(line))] {
	case ">":
		if err := p.use(name); err != nil {
			return nil, err
		}
		return p.send(name, line[1:])
	case "<":
		if err := p.use(name); err != nil {
			return nil, err
		}
		return expectation(name, line[1:])
	}
	if pass, ok := strings.CutPrefix(line, "pass "); ok && name == "" {
		return parsePass(pass)
	}
	return p.command(name, strings.Fields(line))
}

// command parses a step that begins with a word.
func (p *parser) command(name string, words []string) (action, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("nothing follows %s: write %s> …, %s< … or %s: closed 1000", name, name, name, name)
	}
	word, rest := words[0], words[1:]
	if parse, ok := general[word]; ok {
		if name != "" {
			return nil, fmt.Errorf("%s belongs to no connection: write it without %s:", word, name)
		}
		return parse(p, rest)
	}
	parse, ok := ofConnection[word]
	if !ok {
		return nil, fmt.Errorf("%q is no step: write > or < and a message, or one of connect, resume, pass, within, silent, wait, closed, close, drop, http", word)
	}
	if err := p.use(name); err != nil {
		return nil, err
	}
	return parse(name, rest)
}

// general are the steps that need no connection.
var general = map[string]func(p *parser, words []string) (action, error){
	"connect": (*parser).connect,
	"resume":  (*parser).resume,
	"within":  func(_ *parser, words []string) (action, error) { return parseLength(words, within) },
	"wait":    func(_ *parser, words []string) (action, error) { return parseLength(words, wait) },
	"http":    func(_ *parser, words []string) (action, error) { return parseHTTP(words) },
}

// ofConnection are the steps that belong to one.
var ofConnection = map[string]func(name string, words []string) (action, error){
	"silent": func(name string, words []string) (action, error) {
		return parseLength(words, func(d time.Duration) action { return silent(name, d) })
	},
	"closed": parseClosed,
	"close":  func(name string, words []string) (action, error) { return bare("close", words, closeOurs(name)) },
	"drop":   func(name string, words []string) (action, error) { return bare("drop", words, drop(name)) },
}

// use says that a step needs this connection. The one without a name is there from the start if nothing was connected
// before it is used.
func (p *parser) use(name string) error {
	switch {
	case p.known[name]:
		return nil
	case name == "" && len(p.known) == 0:
		p.known[""], p.implied = true, true
		p.steps = append(p.steps, step{p.line, "connect", connect("", options{})})
		return nil
	case name == "":
		return fmt.Errorf("which connection is meant? All of them have names: write, say, %s> or %s: before the step", p.anyName(), p.anyName())
	}
	return fmt.Errorf("there is no connection %s here: write connect as %s before this line", name, name)
}

// anyName is the first of the names, for an example.
func (p *parser) anyName() string {
	first := ""
	for name := range p.known {
		if first == "" || name < first {
			first = name
		}
	}
	return first
}

// bare parses a step of a single word.
func bare(word string, rest []string, do action) (action, error) {
	if len(rest) > 0 {
		return nil, fmt.Errorf("nothing follows %s: leave out %q", word, strings.Join(rest, " "))
	}
	return do, nil
}

// maxLength bounds every length of time in a script.
const maxLength = 10 * time.Minute

// parseLength parses a step whose only argument is a length of time.
func parseLength(words []string, make func(time.Duration) action) (action, error) {
	if len(words) != 1 {
		return nil, fmt.Errorf("one length of time must follow: write it like 500ms or 2s")
	}
	d, err := time.ParseDuration(words[0])
	if err != nil || d <= 0 || d > maxLength {
		return nil, fmt.Errorf("%q is no length of time up to %v: write it like 500ms or 2s", words[0], maxLength)
	}
	return make(d), nil
}

func parseClosed(name string, words []string) (action, error) {
	if len(words) == 0 {
		return closed(name, 0), nil
	}
	code, err := strconv.Atoi(words[0])
	if err != nil || len(words) > 1 || code < 1000 || code > 4999 {
		return nil, fmt.Errorf("%q is no close code: write closed 1009, or closed alone for any code", strings.Join(words, " "))
	}
	return closed(name, code), nil
}

func parseHTTP(words []string) (action, error) {
	const how = "write it like http GET /healthz 200, with words that the answer contains after it if you like"
	if len(words) < 3 || !strings.HasPrefix(words[1], "/") {
		return nil, fmt.Errorf("method, path and status must follow http: %s", how)
	}
	status, err := strconv.Atoi(words[2])
	if err != nil || status < 100 || status > 599 {
		return nil, fmt.Errorf("%q is no HTTP status: %s", words[2], how)
	}
	if strings.ToUpper(words[0]) != words[0] {
		return nil, fmt.Errorf("%q is no HTTP method: %s", words[0], how)
	}
	return httpRequest(words[0], words[1], status, strings.Join(words[3:], " ")), nil
}

// beside is a file next to the script.
func (p *parser) beside(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(p.name), file)
}
