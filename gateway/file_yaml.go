package gateway

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// duration is one of at least 0, such as 90s. Its errors have their line, which those of the decoder have not.
type duration time.Duration

// UnmarshalYAML reads it.
func (d *duration) UnmarshalYAML(node ast.Node) error {
	v, err := time.ParseDuration(node.GetToken().Value)
	if err != nil || v < 0 {
		return fmt.Errorf("line %d: this must be a duration, such as 90s or 10m", lineOf(node))
	}
	*d = duration(v)
	return nil
}

// reference is a name that stands elsewhere in the file.
type reference struct {
	name string
	line int
}

// UnmarshalYAML reads it.
func (r *reference) UnmarshalYAML(node ast.Node) error {
	r.line = lineOf(node)
	return yaml.NodeToValue(node, &r.name)
}

// entries are the agents or the MCP servers, in their order.
type entries []*ast.MappingValueNode

// UnmarshalYAML takes the nodes as they are: which keys an agent has depends on its kind.
func (n *entries) UnmarshalYAML(node ast.Node) error {
	switch node := node.(type) {
	case *ast.MappingNode:
		*n = node.Values
	case *ast.MappingValueNode:
		*n = entries{node}
	case *ast.NullNode:
	default:
		return fmt.Errorf("line %d: here must be names, each with its keys indented below it", lineOf(node))
	}
	return nil
}

var envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkEnv catches a key where the name of its variable should stand. It does not repeat it.
func checkEnv(name string) error {
	if name != "" && !envPattern.MatchString(name) {
		return errors.New("key_env, token_env and env take names of environment variables, not what is in them")
	}
	return nil
}

func lineOf(node ast.Node) int { return node.GetToken().Position.Line }

// inLine is a decoder's error with its line, and without the text that the decoder shows: a key may stand there.
func inLine(err error) error {
	var mismatch *yaml.TypeError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &mismatch) && mismatch.Token != nil:
		return fmt.Errorf("line %d: this must be %s", mismatch.Token.Position.Line, inWords(mismatch.DstType))
	case errors.As(err, &overflow) && overflow.Token != nil:
		return fmt.Errorf("line %d: this must be %s", overflow.Token.Position.Line, inWords(overflow.DstType))
	}
	var known yaml.Error
	if errors.As(err, &known) && known.GetToken() != nil {
		return fmt.Errorf("line %d: %s", known.GetToken().Position.Line, known.GetMessage())
	}
	return err
}

// inWords is a type of a value in the words of a vela.yaml.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "something else"
}
