// Package mcp is the tools of MCP servers, as a [tool.Caller]: servers that it starts and speaks with over their
// standard input and output, and servers that it reaches over HTTP.
//
//	s, err := mcp.New(mcp.Config{Name: "github", Command: "github-mcp", Env: []string{"TOKEN=" + token}})
//	g.Go(func() error { return s.Run(ctx) })
//	tools := tool.Join(builtIn, s)
//
// Start at [Server.Run], which owns the connection: it connects, lists the tools, lists them again when the server says
// that they changed, and when the server is gone connects again, after 1 s, then 2, and so on up to 30. Nothing waits
// for a server: until it is there for the first time it has no tools, and while it is away its tools stay and say so.
//
// A server is not trusted. What it sends is bounded: its messages, their number, its tools, their schemas and results.
// What it says of a tool being read-only is passed on as its word. stdio.go and http.go are the two ways to one,
// definitions.go is what becomes of its tools and result.go of what they return.
package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"vela/turn/tool"
)

// Config is one server. Name is required, and either Command or URL.
type Config struct {
	// Name begins the names of the server's tools: github_list_repos. It takes 1 to 32 letters, digits and -, and no _, so
	// that no server can give its tools names that look like another's.
	Name string

	Command string   // a program that speaks MCP over its standard input and output
	Args    []string // of the command
	Env     []string // of the command, as NAME=value, beside PATH, HOME and LANG; it gets nothing else of ours
	Dir     string   // where the command runs; empty: where we do

	URL    string      // of a server that speaks streamable HTTP: http or https, without a user
	Header http.Header // goes with every request to it

	Timeout time.Duration // of a call; default 60 s

	Log *slog.Logger // nil discards

	// Only tests set these; 0 is the default.
	grace time.Duration // to end in peace
	delay time.Duration // before connecting again, the first time
}

// What a server may be and send.
const (
	connectTimeout = 20 * time.Second // until its tools are known
	callTimeout    = time.Minute
	endTimeout     = time.Second // to end in peace

	firstDelay = time.Second // before connecting again; doubles
	lastDelay  = 30 * time.Second

	maxMessage = 4 << 20 // bytes
	maxResult  = 64 << 10
	maxSchema  = 16 << 10

	maxDescription = 1024 // bytes, as much as every vendor takes
	maxTools       = 128
	maxPages       = 64   // of a list
	maxRate        = 1000 // lines that a command writes in a second
)

var (
	names  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,31}$`)
	envVar = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// New prepares a server; [Server.Run] connects to it. It returns an error for a Config that cannot work, which names
// neither an address nor a value.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("mcp: server %q: %w", cfg.Name, err)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, callTimeout)
	cfg.grace = cmp.Or(cfg.grace, endTimeout)
	cfg.delay = cmp.Or(cfg.delay, firstDelay)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("mcp", cfg.Name)
	return &Server{cfg: cfg, changed: make(chan struct{}, 1)}, nil
}

func (c Config) check() error {
	if !names.MatchString(c.Name) {
		return errors.New("a name takes 1 to 32 letters, digits and -")
	}
	for _, taken := range tool.BuiltIn() {
		if strings.HasPrefix(taken, c.Name+"_") {
			return fmt.Errorf("with this name it could have a tool that is called as the built-in %s is: choose another", taken)
		}
	}
	switch {
	case (c.Command == "") == (c.URL == ""):
		return errors.New("it takes a command or a URL, and not both")
	case c.Timeout < 0:
		return errors.New("its timeout is negative")
	}
	for _, v := range c.Env {
		if !envVar.MatchString(v) || strings.ContainsRune(v, 0) {
			return errors.New("a variable of its environment is not NAME=value")
		}
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("its URL is not http:// or https:// and a host")
	}
	if u.User != nil {
		return errors.New("its URL has a user or password in it: use a header")
	}
	return nil
}
