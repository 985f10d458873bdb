package protocol_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vela/protocol"
	"vela/protocol/ganglia"
)

// Everything that is derived from the table in events.go and codes.go is written by a test, and held to it by the same
// test: go test ./protocol -update rewrites it, go test ./protocol fails when it has drifted.
var update = flag.Bool("update", false, "rewrite the generated files")

// golden compares a generated file with what is on disk, or writes it.
func golden(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has drifted from the table: run go test ./protocol -update\n%s", path, firstDifference(got, want))
	}
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	line := func(l []string) string {
		if i < len(l) {
			return l[i]
		}
		return "(end of file)"
	}
	return "  there: " + line(g) + "\n  table: " + line(w)
}

// field is one member of a payload, as the documents need it.
type field struct {
	name     string // on the wire; "" of a struct that is embedded, whose members stand among the others
	doc      string // the comment in events.go, "" if there is none
	typ      reflect.Type
	optional bool
	is       string // the only value that it may have; "" where there is none such
}

// fields lists what an event's payload holds in a version. Which fields version 1 has is what AppendTo writes of an
// event in which everything is set.
func fields(e protocol.Event, version int) []field {
	list := structFields(reflect.TypeOf(e.Zero()))
	if version > 1 {
		return list
	}
	var wire struct{ Payload map[string]json.RawMessage }
	if err := json.Unmarshal(protocol.Encode(filled(e)), &wire); err != nil {
		panic(fmt.Sprintf("protocol: %s in version 1: %v", e.Type, err))
	}
	return slices.DeleteFunc(list, func(f field) bool { return wire.Payload[f.name] == nil })
}

// grew says whether version 2 has more of an event that version 1 has too.
func grew(e protocol.Event) bool { return e.Since == 1 && len(fields(e, 1)) < len(fields(e, 2)) }

func structFields(typ reflect.Type) []field {
	var list []field
	if e, ok := reflect.Zero(typ).Interface().(ganglia.Event); ok && typ.PkgPath() == reflect.TypeFor[ganglia.Event]().PkgPath() {
		list = append(list, field{name: "type", typ: reflect.TypeFor[string](), is: e.Type()}) // which its MarshalJSON adds
	}
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && !f.Anonymous {
			panic("protocol: field without a name on the wire: " + typ.Name() + "." + f.Name)
		}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem() // nil is left out, which optional says
		}
		list = append(list, field{name, fieldDocs[typ.Name()+"."+f.Name], of, options == "omitempty", ""})
	}
	return list
}

// alternative is one of the shapes that a payload may have, in place of a single one.
type alternative struct {
	name   string
	fields []field
}

// alternatives lists those of an event: of an artifact, one for each of its types, by the tag that says which of them have a
// field. All others have none.
func alternatives(e protocol.Event) []alternative {
	typ := reflect.TypeOf(e.Zero())
	if typ != reflect.TypeFor[ganglia.Artifact]() {
		return nil
	}
	of := map[string][]string{}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of[name] = strings.Fields(f.Tag.Get("of"))
	}
	var list []alternative
	for _, kind := range ganglia.ArtifactTypes() {
		v := alternative{name: pascal(string(kind)) + "Artifact"}
		for _, f := range structFields(typ) {
			always, maybe := slices.Contains(of[f.name], string(kind)), slices.Contains(of[f.name], string(kind)+"?")
			if len(of[f.name]) > 0 && !always && !maybe {
				continue
			}
			f.optional = f.optional && !always
			if f.name == "artifact_type" {
				f.is = string(kind)
			}
			v.fields = append(v.fields, f)
		}
		list = append(list, v)
	}
	return list
}

// pascal writes snake_case as PascalCase.
func pascal(snake string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(snake, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// flat lists the members of embedded structs among the others.
func flat(list []field) []field {
	var out []field
	for _, f := range list {
		if f.name == "" {
			out = append(out, flat(structFields(f.typ))...)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// filled is the event with every field set, down to the last.
func filled(e protocol.Event) protocol.Message {
	v := reflect.New(reflect.TypeOf(e.Zero())).Elem()
	fill(v)
	return v.Interface().(protocol.Message)
}

func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.Set(reflect.ValueOf(json.RawMessage(`{"x":1}`)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(f)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), value)
	default:
		panic("protocol: no way to fill " + v.Type().String())
	}
}

// nestedStructs lists the structs that payloads hold, each once, in the order in which the table comes upon them.
func nestedStructs() []reflect.Type {
	var list []reflect.Type
	var walk func([]field)
	walk = func(fields []field) {
		for _, f := range fields {
			typ := f.typ
			if typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if typ.Kind() == reflect.Struct && !slices.Contains(list, typ) {
				walk(structFields(typ))
				list = append(list, typ)
			}
		}
	}
	for _, e := range protocol.Events() {
		walk(fields(e, 2))
	}
	return list
}

// docOf is what an event is for in a version.
func docOf(e protocol.Event, version int) string {
	if version == 2 && e.Doc2 != "" {
		return e.Doc2
	}
	return e.Doc
}

// structName is the event's name in Go, and in what is made from it.
func structName(e protocol.Event) string { return reflect.TypeOf(e.Zero()).Name() }

// fieldDocs holds the comments of the structs' fields, by Struct.Field, and typeDocs those of the structs themselves.
var fieldDocs, typeDocs = func() (docs, types map[string]string) {
	docs, types = map[string]string{}, map[string]string{}
	for _, name := range []string{"events.go", "ganglia/ganglia.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		readDocs(file, docs, types)
	}
	return docs, types
}()

func readDocs(file *ast.File, docs, types map[string]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if one, ok := n.(*ast.GenDecl); ok && one.Tok == token.TYPE && !one.Lparen.IsValid() {
			name := one.Specs[0].(*ast.TypeSpec).Name.Name
			types[name] = sentence(strings.TrimPrefix(one.Doc.Text(), name+" is "))
		}
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		body, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, f := range body.Fields.List {
			for _, name := range f.Names {
				comment := strings.TrimPrefix(f.Doc.Text()+f.Comment.Text(), name.Name+" is ") // as Go wants it to begin
				docs[spec.Name.Name+"."+name.Name] = sentence(comment)
			}
		}
		return false
	})
}

// sentence makes one line of a comment. In which version a field is, the documents show by where they list it.
func sentence(comment string) string {
	s := strings.Join(strings.Fields(comment), " ")
	s = strings.TrimSuffix(s, ", in version 2")
	s = strings.TrimLeft(strings.TrimPrefix(s, "in version 2"), ":, ")
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// eventsFrom lists what a side sends in a version.
func eventsFrom(side protocol.Side, version int) []protocol.Event {
	var list []protocol.Event
	for _, e := range protocol.Events() {
		if e.From == side && e.Since <= version {
			list = append(list, e)
		}
	}
	return list
}

// upTo lists the events that a version has.
func upTo(version int) []protocol.Event {
	return slices.DeleteFunc(protocol.Events(), func(e protocol.Event) bool { return e.Since > version })
}
