// Package cert has the gateway's certificate: one that the operator brings, or one that the gateway makes for itself.
//
// Start at [Load] and [Self]. Both return a [Certificate] that is ready to serve with [Certificate.Config].
package cert

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Certificate is a certificate with its key.
type Certificate struct {
	get func() (*tls.Certificate, error)
}

// Load reads a certificate, with the chain behind it, and its key from PEM files. It is read once: a new one needs a
// restart.
func Load(certFile, keyFile string) (*Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("cert: the certificate cannot be read: %w", err)
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("cert: the key cannot be read: %w", err)
	}
	c, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("cert: %s and %s are no certificate with its key: %s; both must be PEM, the key without a password",
			certFile, keyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	if err := good(c.Leaf, time.Now()); err != nil {
		return nil, fmt.Errorf("cert: %s %w", certFile, err)
	}
	return &Certificate{get: func() (*tls.Certificate, error) { return &c, nil }}, nil
}

// good says what is wrong with a certificate that nobody would accept.
func good(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("expired on %s: get a new one", leaf.NotAfter.Format(time.DateOnly))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("is not valid before %s: is the clock right?", leaf.NotBefore.Format(time.DateOnly))
	case len(leaf.DNSNames)+len(leaf.IPAddresses) == 0:
		return errors.New("names no host (it has no subject alternative name), so that no browser would take it")
	}
	return nil
}

// Config is how to serve with the certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get() },
	}
}

// Names says whether the certificate is for a host of this name or address.
func (c *Certificate) Names(host string) bool {
	t, err := c.get()
	return err == nil && t.Leaf.VerifyHostname(host) == nil
}

// Fingerprint is the SHA-256 of the certificate, written as browsers write it.
func (c *Certificate) Fingerprint() string {
	t, err := c.get()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(t.Leaf.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}
