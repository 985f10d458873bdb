package client_test

import (
	"context"
	"fmt"
	"net"

	"vela/gateway"
	"vela/gateway/client"
	"vela/protocol"
)

// A typed turn, in a session that would outlive this connection.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	g, err := gateway.New(gateway.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- g.Run(ctx, func(a net.Addr) { ready <- a.String() }) }()
	defer func() { <-ended }()
	defer stop()

	c, err := client.Converse(ctx, <-ready, client.ConversationOptions{Settings: protocol.SessionStart{Turns: "agent"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err := c.Send(ctx, protocol.InputTextSubmit{Text: "how far is the harbour?"}); err != nil {
		fmt.Println(err)
		return
	}
	for {
		e, err := c.Receive(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		switch m := e.Message.(type) {
		case protocol.ResponseTextDelta:
			fmt.Print(m.Text)
		case protocol.ResponseCompleted:
			fmt.Println()
			return
		}
	}
	// Output: You said: how far is the harbour?
}
