// Command bare is the floor that the gateway is measured against: nhooyr.io/websocket and nothing else. It reads every
// message and answers each with one fixed text of the given size. Nothing is decoded, nothing is kept.
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
	flag.Parse()
	answer := []byte(strings.Repeat("x", *size))
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
			if err := conn.Write(ctx, websocket.MessageText, answer); err != nil {
				return
			}
		}
	})))
}
