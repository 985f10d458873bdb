package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	lifetime = 365 * 24 * time.Hour // phones take no self-made one of more than 825 days
	renewal  = 30 * 24 * time.Hour  // before its end
)

// Self returns a certificate that this machine makes for itself, for the hosts, which are names and addresses. It is kept
// in the folder, as self.crt and self.key, and so is the same at the next start: until it nears its end, which is looked
// at whenever somebody connects, or a host is missing from it.
func Self(folder string, hosts []string) (*Certificate, error) {
	s := &self{folder: folder, hosts: hosts}
	c := &Certificate{get: s.get}
	_, err := s.get()
	return c, err
}

// self is a certificate that renews itself.
type self struct {
	folder string
	hosts  []string

	mu   sync.Mutex
	cert *tls.Certificate // nil before the first get
}

func (s *self) get() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cert == nil {
		s.cert = s.kept()
	}
	if s.cert != nil && time.Now().Before(s.cert.Leaf.NotAfter.Add(-renewal)) {
		return s.cert, nil
	}
	made, err := s.make()
	if err == nil {
		s.cert = made
	}
	if s.cert != nil { // better an old one than none: the next connection tries again
		return s.cert, nil
	}
	return nil, err
}

func (s *self) certFile() string { return filepath.Join(s.folder, "self.crt") }
func (s *self) keyFile() string  { return filepath.Join(s.folder, "self.key") }

// kept returns what an earlier run has left, nil unless it is good for our hosts and nobody else could read its key.
func (s *self) kept() *tls.Certificate {
	info, err := os.Stat(s.keyFile())
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil
	}
	c, err := tls.LoadX509KeyPair(s.certFile(), s.keyFile())
	if err != nil || good(c.Leaf, time.Now()) != nil {
		return nil
	}
	for _, h := range s.hosts {
		if c.Leaf.VerifyHostname(h) != nil {
			return nil
		}
	}
	return &c
}

// make makes a certificate with a key of its own, and keeps it.
func (s *self) make() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cert: make a key: %w", err)
	}
	now := time.Now()
	template := x509.Certificate{
		Subject:               pkix.Name{CommonName: "Vela on this machine"},
		NotBefore:             now.Add(-time.Hour), // a phone's clock may be behind
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range s.hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cert: make a certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cert: write the key: %w", err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	if err := s.keep(certPEM, keyPEM); err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(certPEM, keyPEM)
	return &c, err
}

// keep writes both files whole or not at all. Should only one be written, the two do not match and are made again.
func (s *self) keep(certPEM, keyPEM []byte) error {
	err := os.MkdirAll(s.folder, 0o700)
	if err == nil {
		err = errors.Join(replace(s.keyFile(), keyPEM, 0o600), replace(s.certFile(), certPEM, 0o644))
	}
	if err != nil {
		return fmt.Errorf("cert: the certificate cannot be kept: %w; give a folder that can be written with --data", err)
	}
	return nil
}

func replace(file string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is left to remove once it has its name
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
