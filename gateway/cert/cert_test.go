package cert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vela/gateway/cert"
)

var hosts = []string{"localhost", "127.0.0.1", "::1", "my_host", "192.0.2.7"}

func self(t *testing.T, folder string, hosts ...string) *cert.Certificate {
	t.Helper()
	c, err := cert.Self(folder, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestASelfMadeCertificateIsKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "folder")
	first := self(t, folder, hosts...)
	if again := self(t, folder, hosts[1:]...); again.Fingerprint() != first.Fingerprint() {
		t.Error("the second start has another certificate")
	}
	for _, h := range hosts {
		if !first.Names(h) {
			t.Errorf("it is not for %s", h)
		}
	}
	for _, h := range []string{"example.org", "192.0.2.8", ""} {
		if first.Names(h) {
			t.Errorf("it is for %q", h)
		}
	}
	if len(first.Fingerprint()) != 32*3-1 || strings.Trim(first.Fingerprint(), "0123456789ABCDEF:") != "" {
		t.Errorf("fingerprint %q", first.Fingerprint())
	}
	for file, mode := range map[string]os.FileMode{"self.key": 0o600, "self.crt": 0o644} {
		info, err := os.Stat(filepath.Join(folder, file))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want %v", file, info.Mode(), err, mode)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestASelfMadeCertificateIsMadeAgain(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, folder string) []string{
		"a host is new":           func(*testing.T, string) []string { return append([]string{"192.0.2.9"}, hosts...) },
		"others can read the key": func(t *testing.T, f string) []string { chmod(t, filepath.Join(f, "self.key"), 0o640); return hosts },
		"the key is gone":         func(t *testing.T, f string) []string { remove(t, filepath.Join(f, "self.key")); return hosts },
		"the certificate is gone": func(t *testing.T, f string) []string { remove(t, filepath.Join(f, "self.crt")); return hosts },
		"the key is of another": func(t *testing.T, f string) []string {
			other := t.TempDir()
			self(t, other, hosts...)
			if err := os.Rename(filepath.Join(other, "self.key"), filepath.Join(f, "self.key")); err != nil {
				t.Fatal(err)
			}
			return hosts
		},
		"the certificate is rubbish": func(t *testing.T, f string) []string { write(t, filepath.Join(f, "self.crt"), "rubbish"); return hosts },
	} {
		folder := t.TempDir()
		first := self(t, folder, hosts...)
		now := spoil(t, folder)
		second := self(t, folder, now...)
		if second.Fingerprint() == first.Fingerprint() {
			t.Errorf("%s: the same certificate", name)
		}
		if third := self(t, folder, now...); third.Fingerprint() != second.Fingerprint() {
			t.Errorf("%s: the new one is not kept", name)
		}
		if info, _ := os.Stat(filepath.Join(folder, "self.key")); info.Mode().Perm() != 0o600 {
			t.Errorf("%s: key with mode %v", name, info.Mode())
		}
	}
}

func chmod(t *testing.T, file string, mode os.FileMode) {
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestASelfMadeCertificateIsRenewedBeforeItsEnd(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		running := self(t, folder, hosts...)
		first := running.Fingerprint()
		time.Sleep(334 * 24 * time.Hour)
		if running.Fingerprint() != first || self(t, folder, hosts...).Fingerprint() != first {
			t.Error("renewed with more than a month to go")
		}
		time.Sleep(2 * 24 * time.Hour)
		second := running.Fingerprint() // looks, as a connection does
		if second == first || self(t, folder, hosts...).Fingerprint() != second {
			t.Error("not renewed, or not kept, in the last month")
		}
	})
}

func TestARenewalThatFailsKeepsTheOldOne(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "x")
	synctest.Test(t, func(t *testing.T) {
		c := self(t, folder, hosts...)
		first := c.Fingerprint()
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		write(t, folder, "a file where the folder was")
		time.Sleep(340 * 24 * time.Hour)
		if c.Fingerprint() != first {
			t.Error("the certificate is gone")
		}
		remove(t, folder)
		if c.Fingerprint() == first {
			t.Error("it is not tried again")
		}
	})
}

func TestAFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := cert.Self(filepath.Join(file, "folder"), hosts); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("%v", err)
	}
}

// made writes a certificate as an operator might bring it.
func made(t *testing.T, change func(*x509.Certificate)) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"*.example.org"}}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certFile, keyFile = filepath.Join(folder, "c.pem"), filepath.Join(folder, "k.pem")
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return certFile, keyFile
}

func TestLoad(t *testing.T) {
	goodCert, goodKey := made(t, nil)
	_, otherKey := made(t, nil)
	expired, expiredKey := made(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	early, earlyKey := made(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) })
	nameless, namelessKey := made(t, func(c *x509.Certificate) { c.DNSNames = nil })
	rubbish := filepath.Join(t.TempDir(), "rubbish")
	write(t, rubbish, "rubbish")
	for _, c := range []struct {
		name, cert, key, says string
	}{
		{"good", goodCert, goodKey, ""},
		{"no certificate", "/no/such.pem", goodKey, "the certificate cannot be read"},
		{"no key", goodCert, "/no/such.pem", "the key cannot be read"},
		{"a folder", t.TempDir(), goodKey, "the certificate cannot be read"},
		{"another's key", goodCert, otherKey, "private key does not match"},
		{"swapped", goodKey, goodCert, "no certificate with its key"},
		{"rubbish", rubbish, rubbish, "both must be PEM"},
		{"expired", expired, expiredKey, "expired on"},
		{"too early", early, earlyKey, "is the clock right?"},
		{"without a host", nameless, namelessKey, "names no host"},
	} {
		got, err := cert.Load(c.cert, c.key)
		if c.says == "" {
			if err != nil || !got.Names("vela.example.org") || got.Names("example.org") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "PRIVATE KEY-----") {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

func TestAHandshake(t *testing.T) {
	folder := t.TempDir()
	c := self(t, folder, hosts...)
	file, err := os.ReadFile(filepath.Join(folder, "self.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(file) {
		t.Fatal("self.crt is no PEM")
	}
	for _, try := range []struct {
		name string
		cfg  *tls.Config
		ok   bool
	}{
		{"by name", &tls.Config{RootCAs: roots, ServerName: "localhost"}, true},
		{"by address", &tls.Config{RootCAs: roots, ServerName: "192.0.2.7"}, true},
		{"TLS 1.2", &tls.Config{RootCAs: roots, ServerName: "localhost", MaxVersion: tls.VersionTLS12}, true},
		{"TLS 1.1", &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
		{"by another name", &tls.Config{RootCAs: roots, ServerName: "example.org"}, false},
		{"without trust", &tls.Config{ServerName: "localhost"}, false},
	} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", c.Config())
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			if there, err := l.Accept(); err == nil {
				_ = there.(*tls.Conn).Handshake()
				_ = there.Close()
			}
		}()
		here, err := tls.Dial("tcp", l.Addr().String(), try.cfg)
		if err == nil {
			_ = here.Close()
		}
		<-served
		_ = l.Close()
		if (err == nil) != try.ok {
			t.Errorf("%s: %v", try.name, err)
		}
	}
}
