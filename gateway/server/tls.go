package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// accept serves what comes in on l, over TLS where there is a certificate.
func (s *Server) accept(h *http.Server, l net.Listener) error {
	if s.cfg.TLS == nil {
		return h.Serve(l)
	}
	h.TLSConfig = s.cfg.TLS
	h.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){} // HTTP/1.1: a socket cannot be had over 2
	return h.ServeTLS(plainListener{l}, "", "")
}

// plainListener answers those who speak HTTP where TLS is spoken, such as somebody who typed the address without its
// https.
type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &plainConn{Conn: conn}, nil
}

const speaksHTTPS = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This gateway speaks https: write https:// in front of its address.\n"

var errSpokeHTTP = errors.New("server: the client speaks HTTP, not TLS")

// plainConn looks at the first byte that comes. It is read from by one goroutine, that of the handshake, before any
// other sees the connection.
type plainConn struct {
	net.Conn
	looked bool
}

func (c *plainConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.looked || n == 0 {
		return n, err
	}
	c.looked = true
	if b[0] < 'A' || b[0] > 'Z' { // no method of HTTP begins like a TLS record, whose first byte is 22
		return n, err
	}
	_, _ = io.WriteString(c.Conn, speaksHTTPS)
	c.linger()
	return 0, errSpokeHTTP
}

// linger reads what the client still sends, for a moment: to close at once would take the answer back.
func (c *plainConn) linger() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, _ = io.CopyN(io.Discard, c.Conn, 64<<10)
}
