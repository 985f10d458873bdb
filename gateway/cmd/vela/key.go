package main

import (
	"crypto/rand"
	"fmt"
)

type keyCmd struct {
	Name string `arg:"" optional:"" help:"What to call it." default:"main"`
}

// Run prints a new server key as VELA_KEYS takes it.
func (c *keyCmd) Run(io streams) error {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	_, err := fmt.Fprintf(io.out, "%s:%x\n", c.Name, secret)
	return err
}
