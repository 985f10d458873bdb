package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"vela/turn/tool"
)

// result is what a tool returned, as text: what is none is named, since no model of ours is shown it.
func result(r *sdk.CallToolResult) (tool.Result, error) {
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, part(c))
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	text := bounded(strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD"))
	switch {
	case r.IsError && text == "":
		return tool.Result{}, errors.New("The tool failed and does not say why.")
	case r.IsError:
		return tool.Result{}, errors.New(text)
	}
	return tool.Result{Content: text}, nil
}

func part(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[an image that is not shown: %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[a sound that is not played: %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[a link: %s %s]", c.Name, c.URI)
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return "[a resource that is empty]"
		}
		if c.Resource.Text != "" {
			return c.Resource.Text
		}
		return fmt.Sprintf("[a resource that is not shown: %s, %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
	}
	return "[something that is not text]"
}

func bounded(text string) string {
	if len(text) <= maxResult {
		return text
	}
	kept := cut(text, maxResult)
	return fmt.Sprintf("%s\n[cut: %d of %d bytes]", kept, len(kept), len(text))
}

// cut returns as much of a text as n bytes hold, cut between two runes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
