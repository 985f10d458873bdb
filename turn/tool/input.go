package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

func blank(b json.RawMessage) bool { return len(bytes.TrimSpace(b)) == 0 }

func isObject(b json.RawMessage) bool {
	return json.Valid(b) && bytes.HasPrefix(bytes.TrimSpace(b), []byte("{"))
}

// decode reads the input of a built-in tool. Its errors tell a model what to write instead; an unknown field is one,
// since what the model meant by it would not happen.
func decode(input json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("The input's %s must be a %s.", quoted(wrong.Field, 64), kind(wrong.Type))
	case strings.Contains(err.Error(), "unknown field"):
		return fmt.Errorf("The input has an %s.", short(strings.TrimPrefix(err.Error(), "json: "), 100))
	default:
		return errors.New("The input is not the JSON object that this tool takes.")
	}
}

func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Bool:
		return "boolean"
	default:
		return "string"
	}
}

func missing(field string) error { return fmt.Errorf("The input needs %q.", field) }
