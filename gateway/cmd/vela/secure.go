package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"vela/gateway"
	"vela/gateway/auth"
)

// tlsFlag is "self", or a certificate and its key: CERT KEY, or CERT,KEY where there is room for one word only.
type tlsFlag struct{ self, cert, key string }

// Decode implements [kong.MapperValue].
func (f *tlsFlag) Decode(ctx *kong.DecodeContext) error {
	t, err := ctx.Scan.PopValue("certificate")
	if err != nil {
		return err
	}
	text := t.String()
	if text == "self" {
		*f = tlsFlag{self: text}
		return nil
	}
	cert, key, both := strings.Cut(text, ",")
	if !both && ctx.Scan.Peek().IsValue() {
		key = ctx.Scan.Pop().String()
	}
	if cert == "" || key == "" {
		return errors.New("write self, or the files of a certificate and of its key: CERT KEY")
	}
	*f = tlsFlag{cert: cert, key: key}
	return nil
}

// keys takes the server keys out of the environment, so that no program which is started later inherits them.
func (c *serveCmd) keys(io streams) ([]auth.Key, error) {
	list := os.Getenv("VELA_KEYS")
	_ = os.Unsetenv("VELA_KEYS")
	switch {
	case c.Auth != "keys" && list != "":
		fmt.Fprintln(io.err, "vela: VELA_KEYS is set but does nothing: everybody may come in, unless --auth keys is given")
		return nil, nil
	case c.Auth != "keys":
		return nil, nil
	case list == "":
		return nil, errors.New(`--auth keys needs a server key in VELA_KEYS, as name:secret. This makes one: export VELA_KEYS="$(vela key)"`)
	}
	keys, err := auth.ParseKeys(list)
	if err != nil {
		return nil, fmt.Errorf("VELA_KEYS: %w", err)
	}
	return keys, nil
}

// webhook takes the secret out of the environment, for the same reason.
func (c *serveCmd) webhook(io streams) (gateway.Webhook, error) {
	secret := os.Getenv("VELA_WEBHOOK_SECRET")
	_ = os.Unsetenv("VELA_WEBHOOK_SECRET")
	switch {
	case c.Webhook == "" && secret != "":
		fmt.Fprintln(io.err, "vela: VELA_WEBHOOK_SECRET is set but does nothing: nobody is told, unless --webhook is given")
		return gateway.Webhook{}, nil
	case c.Webhook == "":
		return gateway.Webhook{}, nil
	case secret == "":
		return gateway.Webhook{}, errors.New(`--webhook needs a secret in VELA_WEBHOOK_SECRET, which the receiver has too. This makes one: export VELA_WEBHOOK_SECRET="whsec_$(openssl rand -base64 32)"`)
	}
	return gateway.Webhook{URL: c.Webhook, Secret: secret, Types: c.WebhookTypes}, nil
}

func (c *serveCmd) tls() gateway.TLS {
	return gateway.TLS{Self: c.TLS.self != "", Cert: c.TLS.cert, Key: c.TLS.key, Folder: c.Data}
}
