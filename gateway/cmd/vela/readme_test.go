package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"vela/session"
)

var update = flag.Bool("update", false, "write the blocks of the README that are made from the code")

const readme = "../../../README.md"

func TestTheReadmeSaysWhatTheCodeDoes(t *testing.T) {
	diagram, err := session.Diagram()
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{
		"diagram":  "```mermaid\n" + strings.TrimSpace(diagram) + "\n```",
		"settings": settings(t),
		"metrics":  metrics(t),
	}
	file, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	for name, want := range blocks {
		open, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(text, open)
		got, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("the README has no block %q", name)
		}
		if want += "\n"; got != want {
			if !*update {
				t.Errorf("the README's %s is not the code's; go test ./gateway/cmd/vela -update writes it\ngot:\n%s\nwant:\n%s", name, got, want)
			}
			text = before + open + want + end + after
		}
	}
	if *update {
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// settings is the table of serve's flags.
func settings(t *testing.T) string {
	var c cli
	k, err := kong.New(&c, kong.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| flag | variable | default | what |\n| --- | --- | --- | --- |\n")
	for _, command := range k.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, f := range command.Flags {
			if f.Name == "help" {
				continue
			}
			value := "–"
			if f.HasDefault {
				value = "`" + f.Default + "`"
			}
			help := strings.ReplaceAll(f.Help, "${enum}", strings.Join(strings.Split(f.Enum, ","), " or "))
			fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", f.Name, strings.Join(f.Envs, " "), value, help)
		}
	}
	return strings.TrimSpace(b.String())
}

func TestEveryFlagOfServeHasAVariable(t *testing.T) {
	for i := range reflect.TypeFor[serveCmd]().NumField() {
		f := reflect.TypeFor[serveCmd]().Field(i)
		if env := f.Tag.Get("env"); !strings.HasPrefix(env, "VELA_") {
			t.Errorf("%s has the variable %q", f.Name, env)
		}
	}
}
