package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"vela/gateway/auth"
)

type keyCmd struct {
	Name string `arg:"" optional:"" help:"What to call it: up to 32 letters, digits, - and _." default:"main"`
}

// Validate is called by kong after parsing.
func (c *keyCmd) Validate() error {
	if _, err := auth.ParseKeys(c.Name + ":" + strings.Repeat("0", auth.MinSecret)); err != nil {
		return errors.New("a key's name has up to 32 letters, digits, - and _")
	}
	return nil
}

// Run prints a new server key as VELA_KEYS takes it.
func (c *keyCmd) Run(io streams) error {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	_, err := fmt.Fprintf(io.out, "%s:%x\n", c.Name, secret)
	return err
}
