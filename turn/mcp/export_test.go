package mcp

import "time"

// Patient gives the server's end in peace more time than a slow machine needs.
func (c Config) Patient() Config {
	c.grace = time.Minute
	return c
}

// Away keeps the server away, once it is lost, for longer than a test lasts.
func (c Config) Away() Config {
	c.delay = time.Hour
	return c
}
