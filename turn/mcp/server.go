package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"vela/turn/tool"
)

// Server is the tools of one MCP server. Make it with [New]. It is a [tool.Caller].
type Server struct {
	cfg     Config
	changed chan struct{} // the server says that its tools changed; one is as good as many

	// Written by Run, read by whoever calls.
	known atomic.Pointer[tool.Set]   // nil until the server was there
	now   atomic.Pointer[connection] // nil while it is not
	state atomic.Pointer[Status]     // nil while it is connected to for the first time
}

// Status says whether a server is there.
type Status struct {
	There bool
	Why   error // it is not, and what to do: for whoever runs the server, since it may name an address or a path, but no key
}

// Status is how it went when the server was last connected to. Of one that is connected to for the first time it is the
// zero value.
func (s *Server) Status() Status {
	if state := s.state.Load(); state != nil {
		return *state
	}
	return Status{}
}

// Definitions implements [tool.Caller]. They are those of the last time that the server was there.
func (s *Server) Definitions() []tool.Definition { return s.tools().Definitions() }

// Call implements [tool.Caller]. It ends with ctx, and with an error when the server is not there, is lost, or does not
// answer in time.
func (s *Server) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	return s.tools().Call(ctx, c)
}

func (s *Server) tools() *tool.Set {
	if known := s.known.Load(); known != nil {
		return known
	}
	return &tool.Set{}
}

// remoteTool is one of the server's tools. It outlives the connection that it was listed on.
type remoteTool struct {
	server     *Server
	definition tool.Definition
	original   string // its name on the server
}

func (t remoteTool) Definition() tool.Definition { return t.definition }

func (t remoteTool) Run(ctx context.Context, input json.RawMessage) (tool.Result, error) {
	s := t.server
	conn := s.now.Load()
	if conn == nil {
		return tool.Result{}, s.away()
	}
	timed, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	r, err := conn.call(timed, &sdk.CallToolParams{Name: t.original, Arguments: input})
	if err != nil {
		return tool.Result{}, s.why(ctx, timed, err)
	}
	return result(r)
}

func (s *Server) away() error {
	return fmt.Errorf("The server %s is not there at the moment. It is connected to again and again: try later.", s.cfg.Name)
}

// why is an error of a call in words for the model. What they come from is logged, since it may name an address.
func (s *Server) why(ctx, timed context.Context, err error) error {
	var answer *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		return fmt.Errorf("The server %s did not answer within %v.", s.cfg.Name, s.cfg.Timeout)
	case errors.As(err, &answer):
		return fmt.Errorf("The server %s refused the call: %s", s.cfg.Name, cut(answer.Message, 1000))
	}
	s.cfg.Log.Debug("call failed", "err", s.cfg.redact(err.Error()))
	return fmt.Errorf("The server %s was lost during the call, which may have had its effect or not.", s.cfg.Name)
}

// Run connects to the server and keeps the connection until ctx is done; then it ends the connection, and the process
// if there is one, waits for all that it started, and returns nil. It is called once.
func (s *Server) Run(ctx context.Context) error {
	for delay := s.cfg.delay; ; {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > 2*lastDelay {
			delay = s.cfg.delay
		}
		why := errors.New(s.cfg.redact(err.Error()))
		s.state.Store(&Status{Why: why})
		s.cfg.Log.Warn("mcp server is not there", "err", why, "again", delay)
		again := time.NewTimer(delay)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil
		}
		delay = min(2*delay, lastDelay)
	}
}

// serve is one connection, from its beginning to its end.
func (s *Server) serve(ctx context.Context) error {
	link, err := s.dial()
	if err != nil {
		return err
	}
	err = s.over(ctx, link)
	link.end()
	if ctx.Err() != nil {
		return nil
	}
	return link.why(err)
}

// over is a connection over a link.
func (s *Server) over(ctx context.Context, link link) error {
	conn, err := s.connect(ctx, link)
	if err != nil {
		return err
	}
	defer conn.end()
	if err := s.list(ctx, conn); err != nil {
		return err
	}
	s.state.Store(&Status{There: true})
	s.now.Store(conn)
	defer s.now.Store(nil)
	s.cfg.Log.Info("mcp server is there", "tools", len(s.Definitions()))
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-conn.lost:
			return err
		case <-s.changed:
			if err := s.list(ctx, conn); err != nil {
				return err
			}
			s.cfg.Log.Debug("mcp tools were listed again", "tools", len(s.Definitions()))
		}
		if err := s.rest(ctx, conn); err != nil {
			return err
		}
	}
}

// rest bounds how often the tools are listed.
func (s *Server) rest(ctx context.Context, conn *connection) error {
	pause := time.NewTimer(time.Second)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-conn.lost:
		return err
	case <-pause.C:
		return nil
	}
}

// list asks for the tools.
func (s *Server) list(ctx context.Context, conn *connection) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	found := catalogue{server: s, names: map[string]bool{}}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		var page *sdk.ListToolsResult
		err := conn.do(ctx, func(ctx context.Context) (err error) {
			page, err = conn.session.ListTools(ctx, params)
			return err
		})
		if err != nil {
			return fmt.Errorf("list its tools: %w", err)
		}
		found.add(page.Tools)
		params.Cursor = page.NextCursor
		if params.Cursor == "" || found.more {
			break
		}
	}
	if found.more || params.Cursor != "" {
		s.cfg.Log.Warn("mcp server has too many tools; the rest is left out", "kept", len(found.tools))
	}
	set, err := tool.NewSet(found.tools...)
	if err == nil {
		s.known.Store(set)
	}
	return err
}

// connection is a session with the server. lost and the rest of it belong to Run; call is for everybody.
type connection struct {
	session *sdk.ClientSession
	link    link
	lost    chan error // the session is over; it comes once

	ctx    context.Context // done when Run lets go of the connection
	cancel context.CancelFunc
	calls  sync.WaitGroup
	grace  time.Duration
	log    *slog.Logger
}

// connect opens a session. Both the program and whoever is at the other end of a network may hang, so what it waits for
// ends with the link.
func (s *Server) connect(ctx context.Context, l link) (*connection, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "vela", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // it asks nothing of us
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case s.changed <- struct{}{}:
			default:
			}
		},
	})
	timed, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	stop := context.AfterFunc(timed, l.cut)
	defer stop()
	session, err := client.Connect(timed, l.transport(), nil)
	if err != nil {
		if timed.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("connect: no answer within %v (is it a server of MCP?)", connectTimeout)
		}
		return nil, err
	}
	conn := &connection{session: session, link: l, lost: make(chan error, 1), grace: s.cfg.grace, log: s.cfg.Log}
	conn.ctx, conn.cancel = context.WithCancel(context.WithoutCancel(ctx))
	conn.calls.Go(func() {
		err := session.Wait()
		if err == nil {
			err = errors.New("it ended")
		}
		conn.lost <- err
	})
	return conn, nil
}

// call calls a tool.
func (c *connection) call(ctx context.Context, params *sdk.CallToolParams) (r *sdk.CallToolResult, err error) {
	err = c.do(ctx, func(ctx context.Context) (err error) {
		r, err = c.session.CallTool(ctx, params)
		return err
	})
	return r, err
}

// do runs one exchange, which ends with ctx and with the connection. One that does not, since the server takes nothing
// in any more, ends with the link, which is cut for it.
func (c *connection) do(ctx context.Context, exchange func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	done := make(chan error, 1)
	go func() { done <- exchange(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	last := time.NewTimer(c.grace)
	defer last.Stop()
	select {
	case err := <-done:
		return err
	case <-last.C:
		c.log.Warn("mcp server takes nothing in; it is cut off")
		c.link.cut()
		return <-done
	}
}

// end closes the session, in peace if that does not take long, and waits for it.
func (c *connection) end() {
	c.cancel()
	stop := time.AfterFunc(c.grace, c.link.cut)
	_ = c.session.Close() // what the other end makes of it changes nothing
	stop.Stop()
	c.calls.Wait()
}
