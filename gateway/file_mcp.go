package gateway

import (
	"errors"

	"vela/turn/mcp"
)

// mcpServer is a program that speaks MCP on its standard streams, or the address of one.
type mcpServer struct {
	line int

	Command []string          `yaml:"command"`
	Env     []string          `yaml:"env"` // names of the environment variables that the program gets
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	KeyEnv  string            `yaml:"key_env"` // sent as Authorization: Bearer
}

func (s mcpServer) check(name string) error {
	switch {
	case (len(s.Command) == 0) == (s.URL == ""):
		return errors.New("it needs either a command or a url")
	case len(s.Command) > 0 && (s.KeyEnv != "" || len(s.Headers) > 0):
		return errors.New("key_env and headers are for servers with a url: a command gets its variables by env")
	case s.URL != "" && len(s.Env) > 0:
		return errors.New("env is for a command: a server with a url gets its key by key_env")
	}
	for _, name := range s.Env {
		if err := checkEnv(name); err != nil {
			return err
		}
	}
	if err := checkEnv(s.KeyEnv); err != nil {
		return err
	}
	cfg := mcp.Config{Name: name, URL: s.URL, Header: headers(s.Headers)}
	if len(s.Command) > 0 {
		cfg.Command = s.Command[0]
	}
	_, err := mcp.New(cfg) // which starts nothing
	return err
}
