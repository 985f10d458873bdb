package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// conn is a WebSocket client (RFC 6455) of the least cost, so that what is measured is the server: frames to send are
// masked beforehand, and of what arrives only the length is looked at.
type conn struct {
	net.Conn
	in  *bufio.Reader
	buf []byte
}

// dial opens a socket at /ws of the server at addr (host:port), with the given query and further header lines.
func dial(addr, query string, header ...string) (*conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "GET /ws%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n", query, addr, strings.Join(header, ""))
	in := bufio.NewReaderSize(c, 1<<10)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("bench: %s answered %s", addr, res.Status)
	}
	return &conn{Conn: c, in: in, buf: make([]byte, 1<<10)}, nil
}

// frame is one masked text message, ready to be written; sound is a binary one.
func frame(text string) []byte { return masked(opText, text) }
func sound(data []byte) []byte { return masked(opBinary, string(data)) }

// The opcodes of RFC 6455, section 5.2.
const (
	opText   = 0x1
	opBinary = 0x2
	opClose  = 0x8
	opPing   = 0x9
)

func masked(op byte, text string) []byte {
	f := []byte{0x80 | op}
	switch n := len(text); {
	case n < 126:
		f = append(f, 0x80|byte(n))
	default:
		f = append(f, 0x80|126)
		f = binary.BigEndian.AppendUint16(f, uint16(n))
	}
	mask := [4]byte{1, 2, 3, 4}
	f = append(f, mask[:]...)
	for i := range len(text) {
		f = append(f, text[i]^mask[i%4])
	}
	return f
}

// next reads one text message of less than 64 KiB; it stays good until the next call.
func (c *conn) next() ([]byte, error) {
	for {
		if op, m, err := c.message(); err != nil || op == opText {
			return m, err
		}
	}
}

// message reads a message of either kind, as next does. Pings are answered.
func (c *conn) message() (op byte, m []byte, err error) {
	for {
		head, err := c.in.Peek(2)
		if err != nil {
			return 0, nil, err
		}
		op, n, skip := head[0]&0xf, int(head[1]), 2
		if n == 126 {
			if head, err = c.in.Peek(4); err != nil {
				return 0, nil, err
			}
			n, skip = int(binary.BigEndian.Uint16(head[2:])), 4
		}
		if _, err = c.in.Discard(skip); err != nil {
			return 0, nil, err
		}
		if n > len(c.buf) {
			c.buf = make([]byte, n)
		}
		if _, err = io.ReadFull(c.in, c.buf[:n]); err != nil {
			return 0, nil, err
		}
		switch op {
		case opText, opBinary:
			return op, c.buf[:n], nil
		case opClose:
			return 0, nil, io.EOF
		case opPing:
			pong := frame(string(c.buf[:n]))
			pong[0] = 0x8a
			if _, err := c.Write(pong); err != nil {
				return 0, nil, err
			}
		}
	}
}

// until reads messages until one contains the text.
func (c *conn) until(text string) error {
	for {
		m, err := c.next()
		if err != nil {
			return err
		}
		if strings.Contains(string(m), text) {
			return nil
		}
	}
}
