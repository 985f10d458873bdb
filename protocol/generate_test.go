package protocol_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"vela/protocol"
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
	name     string // on the wire
	doc      string // the comment in events.go, "" if there is none
	typ      reflect.Type
	optional bool
}

// fields lists what an event's payload holds. It panics at a struct that the documents cannot show.
func fields(e protocol.Event) []field {
	typ := reflect.TypeOf(e.Zero())
	var list []field
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			panic("protocol: field without a name on the wire: " + typ.Name() + "." + f.Name)
		}
		list = append(list, field{name, fieldDocs[typ.Name()+"."+f.Name], f.Type, options == "omitempty"})
	}
	return list
}

// structName is the event's name in Go, and in what is made from it.
func structName(e protocol.Event) string { return reflect.TypeOf(e.Zero()).Name() }

// fieldDocs holds the comments of the structs' fields, by Struct.Field.
var fieldDocs = func() map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "events.go", nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	docs := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
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
	return docs
}()

// sentence makes one line of a comment.
func sentence(comment string) string {
	s := strings.Join(strings.Fields(comment), " ")
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

func eventsFrom(side protocol.Side) []protocol.Event {
	var list []protocol.Event
	for _, e := range protocol.Events() {
		if e.From == side {
			list = append(list, e)
		}
	}
	return list
}
