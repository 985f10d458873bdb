package gateway_test

import (
	"strings"
	"testing"

	"vela/gateway"
	"vela/gateway/auth"
)

func TestWhereAGatewayMayListen(t *testing.T) {
	keys, err := auth.ParseKeys("main:0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	self := gateway.TLS{Self: true, Folder: t.TempDir()}
	const both, onlyKeys, onlyTLS, fine = "both", "keys", "tls", ""
	for _, c := range []struct {
		addr                           string
		neither, withKeys, withTLS, ok string // what is missing
	}{
		{"127.0.0.1:0", fine, fine, fine, fine},
		{"127.9.9.9:0", fine, fine, fine, fine},
		{"[::1]:0", fine, fine, fine, fine},
		{"localhost:0", fine, fine, fine, fine},
		{"0.0.0.0:0", both, onlyTLS, onlyKeys, fine},
		{"[::]:0", both, onlyTLS, onlyKeys, fine},
		{":0", both, onlyTLS, onlyKeys, fine},
		{"192.0.2.1:0", both, onlyTLS, onlyKeys, fine},
		{"[2001:db8::1]:0", both, onlyTLS, onlyKeys, fine},
		{"[::ffff:192.0.2.1]:0", both, onlyTLS, onlyKeys, fine},
		{"vela.example.org:0", both, onlyTLS, onlyKeys, fine},
		{"localhost.example.org:0", both, onlyTLS, onlyKeys, fine},
	} {
		for _, try := range []struct {
			cfg     gateway.Config
			missing string
		}{
			{gateway.Config{}, c.neither},
			{gateway.Config{Keys: keys}, c.withKeys},
			{gateway.Config{TLS: self}, c.withTLS},
			{gateway.Config{Keys: keys, TLS: self}, c.ok},
		} {
			try.cfg.Addr = c.addr
			_, err := gateway.New(try.cfg)
			if try.missing == fine {
				if err != nil {
					t.Errorf("%s with keys %v and TLS %v: %v", c.addr, try.cfg.Keys, try.cfg.TLS.Self, err)
				}
				continue
			}
			if err == nil {
				t.Errorf("%s with keys %v and TLS %v: taken", c.addr, try.cfg.Keys, try.cfg.TLS.Self)
				continue
			}
			saysKeys, saysTLS := strings.Contains(err.Error(), "--auth keys"), strings.Contains(err.Error(), "--tls self")
			if saysKeys != (try.missing != onlyTLS) || saysTLS != (try.missing != onlyKeys) || !strings.Contains(err.Error(), "refusing to listen") {
				t.Errorf("%s, where %s is missing: %v", c.addr, try.missing, err)
			}
		}
	}
	if _, err := gateway.New(gateway.Config{TLS: gateway.TLS{Self: true, Cert: "x", Key: "y"}}); err == nil {
		t.Error("two certificates were taken")
	}
}
