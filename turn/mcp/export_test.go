package mcp

import "time"

// Patient gives the server's end in peace more time than a slow machine needs.
func (c Config) Patient() Config {
	c.grace = time.Minute
	return c
}
