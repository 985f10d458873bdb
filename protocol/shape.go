package protocol

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// shape is what the JSON of a struct may hold, read off its fields once, at the start. It decodes in place of
// encoding/json, which would take a name in any case, a field that is not there, and a null, and whose errors name Go
// types. The tag since:"2" keeps a field out of version 1.
type shape []part

// part is one field of a struct.
type part struct {
	name     string // on the wire; "" of an embedded struct
	index    int    // in the Go struct
	since    int
	required bool
	inner    shape // of a struct, a pointer to one, or a slice of them
}

func shapeOf(typ reflect.Type) shape {
	if typ.NumField() > maxFields {
		panic("protocol: more fields than maxFields in " + typ.Name())
	}
	var s shape
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := part{name: name, index: i, since: 1, required: options != "omitempty"}
		if f.Tag.Get("since") == "2" {
			p.since = 2
		}
		of := f.Type
		if of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			p.inner = shapeOf(of)
		}
		s = append(s, p)
	}
	return s
}

// has says whether a version knows any of the fields.
func (s shape) has(version int) bool {
	for _, p := range s {
		if p.since <= version {
			return true
		}
	}
	return false
}

// reader decodes one payload.
type reader struct {
	typ     string // the event's, for the errors
	version int
	strict  bool // what a client sends must have the fields that it needs; a gateway may be older than its client
}

// message reads the payload of an event, a valid JSON object.
func (r reader) message(row *Event, payload []byte) (Message, error) {
	if !row.shape.has(r.version) {
		return row.zero, nil
	}
	v := reflect.New(reflect.TypeOf(row.zero)).Elem()
	if err := r.object(row.shape, v, payload, ""); err != nil {
		return nil, err
	}
	return v.Interface().(Message), nil
}

// found is where the members of an object lie, in the order of a shape; nil where there is none.
type found [maxFields][]byte

// maxFields bounds a struct, so that found needs no heap.
const maxFields = 24

// find looks at every member of an object once; the last of several counts.
func (s shape) find(object []byte) (f found, some bool) {
	scan := scanner{buf: object}
	for more := scan.enter(); more; more = scan.next() {
		for i := range s {
			if s[i].name != "" && scan.at(s[i].name) {
				f[i], some = scan.member, true
				break
			}
		}
	}
	return f, some
}

// object reads a struct. path is where the struct stands, with a dot at its end.
func (r reader) object(s shape, into reflect.Value, object []byte, path string) error {
	members, _ := s.find(object)
	for i, p := range s {
		var err error
		field := into.Field(p.index)
		switch raw := members[i]; {
		case p.since > r.version:
		case p.name == "":
			err = r.embedded(p, field, object, path)
		case given(raw):
			err = r.value(p, field, raw, path+p.name)
		case r.strict && p.required:
			err = r.wrong(path+p.name, field.Type())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// embedded reads the members of an embedded struct, which stands behind a pointer and stays nil without any of them.
func (r reader) embedded(p part, into reflect.Value, object []byte, path string) error {
	if _, some := p.inner.find(object); !some {
		return nil
	}
	into.Set(reflect.New(into.Type().Elem()))
	return r.object(p.inner, into.Elem(), object, path)
}

// value reads any JSON value that is not null into what the contract wants there.
func (r reader) value(p part, into reflect.Value, raw []byte, path string) error {
	good := false
	switch {
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return r.value(p, into.Elem(), raw, path)
	case into.Type() == reflect.TypeFor[json.RawMessage]():
		good = raw[0] == '{'
		into.SetBytes(append([]byte(nil), raw...))
	case into.Kind() == reflect.String && raw[0] == '"':
		text, err := unquoted(raw)
		if good = err == nil; good {
			into.SetString(string(text))
		}
	case into.Kind() == reflect.Bool:
		good = raw[0] == 't' || raw[0] == 'f'
		into.SetBool(raw[0] == 't')
	case into.CanInt():
		n, err := strconv.ParseUint(string(raw), 10, into.Type().Bits()-1) // nothing in the contract is negative
		good = err == nil
		into.SetInt(int64(n))
	case into.CanUint():
		n, err := strconv.ParseUint(string(raw), 10, into.Type().Bits())
		good = err == nil
		into.SetUint(n)
	case into.CanFloat():
		n, err := strconv.ParseFloat(string(raw), 64)
		good = err == nil && n >= 0 // nothing in the contract is negative
		into.SetFloat(n)
	case into.Kind() == reflect.Struct && raw[0] == '{':
		return r.object(p.inner, into, raw, path+".")
	case into.Kind() == reflect.Slice && raw[0] == '[':
		return r.list(p, into, raw, path)
	case into.Kind() == reflect.Map && raw[0] == '{':
		good = r.words(into, raw)
	}
	if !good {
		return r.wrong(path, into.Type())
	}
	return nil
}

// list reads an array, item by item, so that one bad item among a million costs nothing.
func (r reader) list(p part, into reflect.Value, raw []byte, path string) error {
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	s := scanner{buf: raw, pos: 1}
	for s.peek() != ']' {
		s.skip(',') // the commas have been checked
		s.peek()
		from := s.pos
		s.value(0)
		if !given(raw[from:s.pos]) {
			return r.wrong(path, into.Type())
		}
		item := reflect.New(into.Type().Elem()).Elem()
		if err := r.value(p, item, raw[from:s.pos], path); err != nil {
			return err
		}
		into.Set(reflect.Append(into, item))
	}
	return nil
}

// words reads an object of strings.
func (r reader) words(into reflect.Value, raw []byte) bool {
	var members map[string]*string // nil is a null
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	words := make(map[string]string, len(members))
	for key, word := range members {
		if word == nil {
			return false
		}
		words[key] = *word
	}
	into.Set(reflect.ValueOf(words))
	return true
}

func (r reader) wrong(path string, want reflect.Type) error {
	return invalid("The payload of %s is wrong: %q must be %s.", r.typ, path, inWords(want))
}

// inWords says what JSON a Go type stands for.
func inWords(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return inWords(t.Elem())
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number from 0 on"
	case t.Kind() == reflect.Map:
		return "an object of strings"
	case t == reflect.TypeFor[[]string]():
		return "an array of strings"
	case t.Kind() == reflect.Slice && t != reflect.TypeFor[json.RawMessage]():
		return "an array of objects"
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Slice:
		return "an object"
	}
	return "a whole number from 0 on, not too large"
}
