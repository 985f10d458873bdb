package main

import (
	"errors"
	"io/fs"
	"os"

	"vela/gateway"
)

// usualConfig is read where no other file is named, if it is there.
const usualConfig = "vela.yaml"

// configFile names the file with the agents; empty is the usual one.
type configFile string

func (c configFile) read() (gateway.File, error) {
	if c != "" {
		return gateway.ReadFile(string(c))
	}
	if _, err := os.Stat(usualConfig); errors.Is(err, fs.ErrNotExist) {
		return gateway.File{}, nil
	}
	return gateway.ReadFile(usualConfig)
}
