package client

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"vela/protocol"
)

// Close codes that RFC 6455 keeps out of the contract's own table. The last two are never sent: they say what is missing.
const (
	CloseNormal   protocol.CloseCode = 1000
	CloseNoStatus protocol.CloseCode = 1005 // a close frame without a code
	CloseAbnormal protocol.CloseCode = 1006 // no close frame at all: the network or the gateway is gone
)

// ErrVersion1 is returned where only version 2 will do, and the gateway speaks version 1.
var ErrVersion1 = errors.New("the gateway speaks only version 1 of the protocol, which cannot do that: use a newer one")

// CloseError is the end of a connection.
type CloseError struct {
	Code   protocol.CloseCode
	Reason string // the gateway's words, often none
	Err    error  // what the network says, with [CloseAbnormal]
}

func (e *CloseError) Error() string {
	switch {
	case e.Code == CloseAbnormal:
		return "the connection was lost: " + plain(e.Err)
	case e.Reason != "":
		return fmt.Sprintf("the gateway closed the connection with %d: %s", e.Code, e.Reason)
	}
	return fmt.Sprintf("the gateway closed the connection with %d", e.Code)
}

// plain is what lies at the bottom of an error of the network: what the layers above were doing is of no use to a person.
func plain(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	switch err {
	case nil, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE:
		return "the gateway is gone"
	}
	return err.Error()
}

// Unwrap returns what the network says.
func (e *CloseError) Unwrap() error { return e.Err }

// EventError is an error event of the gateway, returned where it ends what was asked for.
type EventError struct {
	Event protocol.Error
}

func (e *EventError) Error() string {
	return fmt.Sprintf("the gateway says %s: %s", e.Event.Code, e.Event.Message)
}

// DialError is why there is no connection, in words that tell a person what to do.
type DialError struct {
	Address string // host and port
	Status  int    // of the HTTP answer, 0 without one
	Detail  string // the beginning of what the answer said, in one line
	Err     error
}

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

func (e *DialError) Error() string {
	if e.Status != 0 {
		return e.refusal()
	}
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("no gateway listens at %s: start one with `vela serve`, or give --url", e.Address)
	case errors.As(e.Err, &dns):
		return fmt.Sprintf("no host is found for %s (%v): check --url", e.Address, dns.Err)
	case errors.Is(e.Err, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s speaks http, not https: write --url http://%s", e.Address, e.Address)
	case errors.As(e.Err, &unknown):
		return fmt.Sprintf("the certificate of %s is not known here: if the gateway has made it itself, with --tls self, set SSL_CERT_FILE to its self.crt", e.Address)
	}
	return fmt.Sprintf("%s cannot be reached: %v", e.Address, e.Err)
}

// refusal is what an answer other than the upgrade means.
func (e *DialError) refusal() string {
	detail := ""
	if e.Detail != "" {
		detail = ": " + e.Detail
	}
	switch e.Status {
	case http.StatusUnauthorized:
		return fmt.Sprintf("the gateway at %s wants to know who you are: set VELA_TOKEN (401 Unauthorized)%s", e.Address, detail)
	case http.StatusForbidden:
		return fmt.Sprintf("the gateway at %s does not admit this client or its origin (403 Forbidden)%s", e.Address, detail)
	case http.StatusServiceUnavailable:
		return fmt.Sprintf("the gateway at %s is stopping or full (503 Service Unavailable), try again later%s", e.Address, detail)
	case http.StatusNotFound, http.StatusOK:
		return fmt.Sprintf("what listens at %s is no gateway (%s), check --url%s", e.Address, status(e.Status), detail)
	}
	return fmt.Sprintf("the gateway at %s refused the connection (%s)%s", e.Address, status(e.Status), detail)
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}
