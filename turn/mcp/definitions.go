package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"vela/turn/tool"
)

// catalogue is the tools of a server, under the names that we give them.
type catalogue struct {
	server *Server
	tools  []tool.Tool
	names  map[string]bool
	more   bool // than there is room for
}

func (c *catalogue) add(tools []*sdk.Tool) {
	for _, t := range tools {
		if t == nil || t.Name == "" {
			continue
		}
		name := fit(c.server.cfg.Name, t.Name)
		parameters, err := schema(t.InputSchema)
		if err == nil && c.names[name] {
			err = errors.New("there is one with this name")
		}
		if err != nil {
			c.server.cfg.Log.Warn("mcp tool is left out", "tool", name, "err", err)
			continue
		}
		if len(c.tools) == maxTools {
			c.more = true
			return
		}
		c.names[name] = true
		c.tools = append(c.tools, remoteTool{c.server, tool.Definition{
			Name:        name,
			Description: cut(cmp.Or(t.Description, t.Title, t.Name), maxDescription),
			Parameters:  parameters,
			ReadOnly:    t.Annotations != nil && t.Annotations.ReadOnlyHint,
		}, t.Name})
	}
}

// maxName is the longest name that every vendor takes.
const maxName = 64

// fit makes a name of the server's and the tool's that every vendor takes. One that had to be changed ends with a part
// of the tool's hash, so that two tools stay two whatever their names are, and each its name in every list.
func fit(server, name string) string {
	fitting := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	whole := server + "_" + fitting
	if fitting == name && len(whole) <= maxName {
		return whole
	}
	hash := fmt.Sprintf("-%x", sha256.Sum256([]byte(name)))[:9]
	return whole[:min(len(whole), maxName-len(hash))] + hash
}

// schema makes parameters that every vendor takes: an object that says what it is, with properties.
func schema(input any) (json.RawMessage, error) {
	fields, ok := input.(map[string]any)
	if !ok && input != nil {
		return nil, errors.New("its schema is no object")
	}
	whole := map[string]any{"type": "object", "properties": map[string]any{}}
	for name, value := range fields {
		if value != nil {
			whole[name] = value
		}
	}
	if whole["type"] != "object" {
		return nil, errors.New("its input is no object")
	}
	b, err := json.Marshal(whole)
	if err == nil && len(b) > maxSchema {
		err = fmt.Errorf("its schema is longer than %d KiB", maxSchema>>10)
	}
	return b, err
}
