package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMain makes a server of the test binary where the environment says which: a real process that speaks over its
// standard input and output.
func TestMain(m *testing.M) {
	if kind := os.Getenv("TEST_SERVER"); kind != "" {
		be(kind)
		os.Exit(0)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if left := leftovers(before); left != "" {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// leftovers waits until no more goroutines run than before, and says which do if that takes too long.
func leftovers(before int) string {
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			b := make([]byte, 1<<20)
			return fmt.Sprintf("goroutines are left over:\n%s", b[:runtime.Stack(b, true)])
		}
	}
	return ""
}

// be is the server of one kind.
func be(kind string) {
	switch kind {
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stubborn": // it does not even take in the end of its input
		if _, err := fmt.Fprintln(os.Stderr, "pid", os.Getpid()); err != nil {
			os.Exit(1)
		}
		forever()
	case "flood":
		fmt.Fprintln(os.Stderr, "pid", os.Getpid())
		w := bufio.NewWriter(os.Stdout)
		for {
			fmt.Fprintln(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		}
	case "long":
		w := bufio.NewWriter(os.Stdout)
		for {
			fmt.Fprint(w, strings.Repeat("x", 1<<16))
		}
	case "dead":
		fmt.Fprint(os.Stderr, "reading the settings\n\n")
		fmt.Fprint(os.Stderr, "cannot start ", os.Getenv("TOKEN"))
		os.Exit(3)
	default:
		if kind == "chatty" {
			fmt.Println("Welcome!")
			fmt.Println(`{"not": "closed"`)
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 5000)+"\nsecond \xff")
		}
		if err := toolServer(kind, nil).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, "good bye")
		if kind == "stays" {
			forever()
		}
	}
}

// forever waits for a signal that nobody sends, and takes no notice of those that ask it to end.
func forever() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGPIPE)
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2)
	<-never
}

// hanging tells that the tool hangs is called, where the server is no process of its own.
var hanging = make(chan struct{}, 1)

// toolServer has the tools that the tests call. One that hangs ends with its call, at latest when it is released.
func toolServer(kind string, release <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ServerOptions{PageSize: 500})
	if kind == "many" {
		for i := range 2000 {
			add(s, fmt.Sprintf("tool%04d", i), nil, text("x"))
		}
		return s
	}
	add(s, "echo", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, in json.RawMessage) (*sdk.CallToolResult, error) {
		return say(string(in)), nil
	})
	add(s, "long.name of "+strings.Repeat("x", 80), nil, text("long"))
	add(s, "fails", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: say("no such thing").Content}, nil
	})
	add(s, "fails_silently", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true}, nil
	})
	add(s, "mixed", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "one"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("1234")}, &sdk.TextContent{Text: "two"},
			&sdk.ResourceLink{Name: "n", URI: "file:///x"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///y", Text: "inside"}},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("12")},
		}}, nil
	})
	add(s, "structured", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}}, nil
	})
	add(s, "large", nil, text(strings.Repeat("€", 100_000)))
	add(s, "huge", nil, text(strings.Repeat("x", 5<<20)))
	add(s, "hangs", nil, func(ctx context.Context, _ json.RawMessage) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "hanging")
		select {
		case hanging <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
		case <-release:
		}
		return nil, errors.New("it hung")
	})
	add(s, "dies", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		os.Exit(7)
		return nil, nil
	})
	add(s, "env", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		return say(strings.Join(os.Environ(), "\n")), nil
	})
	add(s, "child", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		child := exec.Command("sleep", "1000")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr // it keeps what we write to open
		if err := child.Start(); err != nil {
			return nil, err
		}
		return say(fmt.Sprint(os.Getpid(), " ", child.Process.Pid)), nil
	})
	add(s, "grow", nil, func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
		add(s, "grown", nil, text("new"))
		return say("grew"), nil
	})
	return s
}

func text(t string) func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) {
	return func(context.Context, json.RawMessage) (*sdk.CallToolResult, error) { return say(t), nil }
}

func say(t string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: t}}}
}

func add(s *sdk.Server, name string, a *sdk.ToolAnnotations, f func(context.Context, json.RawMessage) (*sdk.CallToolResult, error)) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	s.AddTool(&sdk.Tool{Name: name, Description: "about " + name, InputSchema: schema, Annotations: a}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return f(ctx, r.Params.Arguments)
	})
}
