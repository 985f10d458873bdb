// Command bare is the floor that the gateway is measured against: nhooyr.io/websocket and nothing else. It reads every
// message and answers each with one fixed text of the given size. Nothing is decoded, nothing is kept.
//
// With -model it is the floor of an agent instead: each message is answered with what a model says (fan.go).
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"

	"nhooyr.io/websocket"
)

func main() {
	size := flag.Int("size", 128, "bytes of each answer")
	model := flag.String("model", "", "address of a model that answers instead, such as 127.0.0.1:1234")
	flag.Parse()
	respond := repeat(strings.Repeat("x", *size))
	if *model != "" {
		respond = fan("http://" + *model + "/v1/chat/completions")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("bare is at http://%s\n", l.Addr())
	log.Fatal(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		ctx := context.Background()
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				return
			}
			if err := respond(ctx, conn); err != nil {
				return
			}
		}
	})))
}

func repeat(text string) func(context.Context, *websocket.Conn) error {
	answer := []byte(text)
	return func(ctx context.Context, conn *websocket.Conn) error {
		return conn.Write(ctx, websocket.MessageText, answer)
	}
}
